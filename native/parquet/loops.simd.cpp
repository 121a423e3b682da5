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

// How the bytes of a group come into eight lanes: by a shuffle within each half, then a shift within each
// lane. The upper half is loaded from the byte in which its first code starts.
struct Spread {
  __m256i shuffle;
  __m256i shift;
  int upper_byte;
};

Spread spread_of(int width) {
  alignas(32) uint8_t shuffle[32];
  alignas(32) uint32_t shift[8];
  const int upper_byte = (4 * width) >> 3;
  for (int lane = 0; lane < 8; ++lane) {
    const int bit = lane * width - (lane < 4 ? 0 : 8 * upper_byte);
    for (int byte = 0; byte < 4; ++byte) shuffle[4 * lane + byte] = static_cast<uint8_t>((bit >> 3) + byte);
    shift[lane] = static_cast<uint32_t>(bit & 7);
  }
  return {_mm256_load_si256(reinterpret_cast<const __m256i*>(shuffle)),
          _mm256_load_si256(reinterpret_cast<const __m256i*>(shift)), upper_byte};
}

uint32_t largest_of(__m256i lanes) {
  const __m128i four = _mm_max_epu32(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256(lanes, 1));
  const __m128i two = _mm_max_epu32(four, _mm_shuffle_epi32(four, 0x4E));
  const __m128i one = _mm_max_epu32(two, _mm_shuffle_epi32(two, 0xB1));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(one));
}

// Up to 25 bits: such a code lies in the four bytes from where it starts.
uint32_t unpack_spread(const uint8_t* in, int width, int64_t groups, uint32_t* out) {
  const Spread spread = spread_of(width);
  const __m256i mask = _mm256_set1_epi32(static_cast<int>(mask_of(width)));
  __m256i largest = _mm256_setzero_si256();
  for (int64_t group = 0; group < groups; ++group, in += width, out += 8) {
    const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in));
    const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + spread.upper_byte));
    const __m256i bytes = _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
    const __m256i lanes = _mm256_shuffle_epi8(bytes, spread.shuffle);
    const __m256i codes = _mm256_and_si256(_mm256_srlv_epi32(lanes, spread.shift), mask);
    largest = _mm256_max_epu32(largest, codes);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), codes);
  }
  return largest_of(largest);
}

uint32_t unpack(const uint8_t* in, int width, int64_t groups, uint32_t* out) {
  return width <= 25 ? unpack_spread(in, width, groups, out) : unpack_words(in, width, groups, out);
}

#else

uint32_t unpack(const uint8_t* in, int width, int64_t groups, uint32_t* out) {
  return unpack_words(in, width, groups, out);
}

#endif

int64_t select_range(const uint32_t* __restrict codes, int64_t count, uint32_t first_row, const uint8_t* keep,
                     uint32_t* __restrict out) {
  int64_t kept = 0;
  for (int64_t index = 0; index < count; ++index) {
    out[kept] = first_row + static_cast<uint32_t>(index);
    kept += keep[codes[index]] != 0;
  }
  return kept;
}

int64_t select_list(const uint32_t* __restrict codes, int64_t count, const uint32_t* rows,
                    const uint8_t* keep, uint32_t* out) {
  int64_t kept = 0;
  for (int64_t index = 0; index < count; ++index) {
    out[kept] = rows[index];
    kept += keep[codes[index]] != 0;
  }
  return kept;
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
