// Unpacking codes, and what is done with each of them.
#include "parquet/loops.hpp"

#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace bireme::BIREME_ISA {

namespace {

uint64_t load_word(const uint8_t* at) {
  uint64_t word;
  __builtin_memcpy(&word, at, sizeof(word));
  return word;
}

uint32_t mask_of(int width) {
  return static_cast<uint32_t>((uint64_t{1} << width) - 1);
}

// A code of up to 32 bits that starts within a byte always lies in the eight bytes from there.
uint32_t unpack_words(const uint8_t* in, int width, int64_t groups, uint32_t* __restrict out) {
  const uint32_t mask = mask_of(width);
  uint32_t largest = 0;
  for (int64_t group = 0; group < groups; ++group, in += width, out += 8) {
    for (int lane = 0; lane < 8; ++lane) {
      const int bit = lane * width;
      const uint32_t code = static_cast<uint32_t>(load_word(in + (bit >> 3)) >> (bit & 7)) & mask;
      largest = code > largest ? code : largest;
      out[lane] = code;
    }
  }
  return largest;
}

#ifdef __AVX2__

constexpr int kSpreadWidthMax = 25;

// How the bytes of a group come into eight lanes: by a shuffle within each half, then a shift within each
// lane. The upper half is loaded from the byte in which its first code starts.
struct alignas(32) Spread {
  uint8_t shuffle[32];
  uint32_t shift[8];
};

struct Spreads {
  Spread of_width[kSpreadWidthMax + 1];
};

constexpr int upper_byte_of(int width) {
  return (4 * width) >> 3;
}

constexpr Spreads make_spreads() {
  Spreads spreads{};
  for (int width = 1; width <= kSpreadWidthMax; ++width) {
    Spread& spread = spreads.of_width[width];
    for (int lane = 0; lane < 8; ++lane) {
      const int bit = lane * width - (lane < 4 ? 0 : 8 * upper_byte_of(width));
      for (int byte = 0; byte < 4; ++byte)
        spread.shuffle[4 * lane + byte] = static_cast<uint8_t>((bit >> 3) + byte);
      spread.shift[lane] = static_cast<uint32_t>(bit & 7);
    }
  }
  return spreads;
}

constexpr Spreads kSpreads = make_spreads();

uint32_t largest_of(__m256i lanes) {
  const __m128i four = _mm_max_epu32(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256(lanes, 1));
  const __m128i two = _mm_max_epu32(four, _mm_shuffle_epi32(four, 0x4E));
  const __m128i one = _mm_max_epu32(two, _mm_shuffle_epi32(two, 0xB1));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(one));
}

// Up to 25 bits: such a code lies in the four bytes from where it starts.
uint32_t unpack_spread(const uint8_t* in, int width, int64_t groups, uint32_t* out) {
  const Spread& spread = kSpreads.of_width[width];
  const __m256i shuffle = _mm256_load_si256(reinterpret_cast<const __m256i*>(spread.shuffle));
  const __m256i shift = _mm256_load_si256(reinterpret_cast<const __m256i*>(spread.shift));
  const int upper_byte = upper_byte_of(width);
  const __m256i mask = _mm256_set1_epi32(static_cast<int>(mask_of(width)));
  __m256i largest = _mm256_setzero_si256();
  for (int64_t group = 0; group < groups; ++group, in += width, out += 8) {
    const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in));
    const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + upper_byte));
    const __m256i bytes = _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
    const __m256i lanes = _mm256_shuffle_epi8(bytes, shuffle);
    const __m256i codes = _mm256_and_si256(_mm256_srlv_epi32(lanes, shift), mask);
    largest = _mm256_max_epu32(largest, codes);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), codes);
  }
  return largest_of(largest);
}

uint32_t unpack(const uint8_t* in, int width, int64_t groups, uint32_t* out) {
  return width <= kSpreadWidthMax ? unpack_spread(in, width, groups, out)
                                  : unpack_words(in, width, groups, out);
}

#else

uint32_t unpack(const uint8_t* in, int width, int64_t groups, uint32_t* out) {
  return unpack_words(in, width, groups, out);
}

#endif

struct RowRange {
  uint32_t first;
  uint32_t at(int64_t index) const { return first + static_cast<uint32_t>(index); }
};

struct RowList {
  const uint32_t* rows;
  uint32_t at(int64_t index) const { return rows[index]; }
};

template <typename Rows>
int64_t select_one_by_one(const uint32_t* codes, int64_t begin, int64_t end, Rows rows,
                          const parquet::Keep& keep, uint32_t* out) {
  int64_t kept = 0;
  for (int64_t index = begin; index < end; ++index) {
    out[kept] = rows.at(index);
    kept += keep.flags[codes[index]];
  }
  return kept;
}

#ifdef __AVX2__

__m256i eight_rows(RowRange rows, int64_t index) {
  return _mm256_add_epi32(_mm256_set1_epi32(static_cast<int>(rows.at(index))),
                          _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

__m256i eight_rows(RowList rows, int64_t index) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows.rows + index));
}

// Which lanes come first when only those of a mask are kept.
struct Compactions {
  alignas(8) uint8_t lanes[256][8];
};

constexpr Compactions make_compactions() {
  Compactions compactions{};
  for (int mask = 0; mask < 256; ++mask) {
    int kept = 0;
    for (int lane = 0; lane < 8; ++lane) {
      if ((mask >> lane & 1) != 0) compactions.lanes[mask][kept++] = static_cast<uint8_t>(lane);
    }
  }
  return compactions;
}

constexpr Compactions kCompactions = make_compactions();

// Among up to 256 codes: eight words of flags, of which each lane picks one.
struct FewFlags {
  __m256i bits;
  explicit FewFlags(const parquet::Keep& keep)
      : bits(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(keep.bits))) {}
  unsigned mask(const uint32_t* codes) const {
    const __m256i lanes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes));
    const __m256i words = _mm256_permutevar8x32_epi32(bits, _mm256_srli_epi32(lanes, 5));
    // The flag becomes the sign: the shift is 31 - (code mod 32).
    const __m256i shift = _mm256_andnot_si256(lanes, _mm256_set1_epi32(31));
    return static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_sllv_epi32(words, shift))));
  }
};

struct ManyFlags {
  const uint8_t* flags;
  explicit ManyFlags(const parquet::Keep& keep) : flags(keep.flags) {}
  unsigned mask(const uint32_t* codes) const {
    unsigned found = 0;
    for (int lane = 0; lane < 8; ++lane) found |= static_cast<unsigned>(flags[codes[lane]]) << lane;
    return found;
  }
};

template <typename Flags, typename Rows>
int64_t select_eights(const uint32_t* codes, int64_t count, Rows rows, const parquet::Keep& keep,
                      uint32_t* out) {
  const Flags flags(keep);
  int64_t kept = 0;
  int64_t index = 0;
  for (; count - index >= 8; index += 8) {
    const unsigned mask = flags.mask(codes + index);
    const __m128i lanes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(kCompactions.lanes[mask]));
    const __m256i found = _mm256_permutevar8x32_epi32(eight_rows(rows, index), _mm256_cvtepu8_epi32(lanes));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + kept), found);
    kept += __builtin_popcount(mask);
  }
  return kept + select_one_by_one(codes, index, count, rows, keep, out + kept);
}

template <typename Rows>
int64_t select_rows(const uint32_t* codes, int64_t count, Rows rows, const parquet::Keep& keep,
                    uint32_t* out) {
  return keep.count <= 256 ? select_eights<FewFlags>(codes, count, rows, keep, out)
                           : select_eights<ManyFlags>(codes, count, rows, keep, out);
}

#else

template <typename Rows>
int64_t select_rows(const uint32_t* codes, int64_t count, Rows rows, const parquet::Keep& keep,
                    uint32_t* out) {
  return select_one_by_one(codes, 0, count, rows, keep, out);
}

#endif

int64_t select_range(const uint32_t* codes, int64_t count, uint32_t first_row, const parquet::Keep& keep,
                     uint32_t* out) {
  return select_rows(codes, count, RowRange{first_row}, keep, out);
}

int64_t select_list(const uint32_t* codes, int64_t count, const uint32_t* rows, const parquet::Keep& keep,
                    uint32_t* out) {
  return select_rows(codes, count, RowList{rows}, keep, out);
}

void gather4(const uint32_t* codes, int64_t count, const uint32_t* values, uint32_t* __restrict out) {
  for (int64_t index = 0; index < count; ++index) out[index] = values[codes[index]];
}

void gather8(const uint32_t* codes, int64_t count, const uint64_t* values, uint64_t* __restrict out) {
  for (int64_t index = 0; index < count; ++index) out[index] = values[codes[index]];
}

}  // namespace

const parquet::Loops& parquet_loops() {
  static constexpr parquet::Loops table = {unpack, select_range, select_list, gather4, gather8};
  return table;
}

}  // namespace bireme::BIREME_ISA
