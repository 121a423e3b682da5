// Tests of vectors of keys. Look-ups in bitmaps and Bloom words are single loads: on the machines measured,
// gathers into vectors were slower than as many loads.
#include "kernels/key_filter_loops.hpp"

#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace bireme::BIREME_ISA {

namespace {

// Unsigned comparison as signed, of which vectors have an instruction: both sides with their upper bit
// flipped.
constexpr uint64_t kFlip = uint64_t{1} << 63;

void test_range(const uint64_t* __restrict values, int64_t rows, WordRange range, uint8_t* __restrict keep) {
  const auto reach = static_cast<int64_t>(range.reach ^ kFlip);
  for (int64_t row = 0; row < rows; ++row) {
    keep[row] = static_cast<int64_t>((values[row] - range.low) ^ kFlip) <= reach ? 1 : 0;
  }
}

void test_bitmap(const uint64_t* __restrict values, int64_t rows, WordRange range,
                 const uint64_t* __restrict bits, uint8_t* __restrict keep) {
  for (int64_t row = 0; row < rows; ++row) {
    const uint64_t offset = values[row] - range.low;
    const bool inside = offset <= range.reach;
    const uint64_t word = bits[inside ? offset >> 6 : 0];
    keep[row] = static_cast<uint8_t>(static_cast<uint64_t>(inside) & (word >> (offset & 63)));
  }
}

void test_list(const uint64_t* __restrict values, int64_t rows, const uint64_t* __restrict list,
               int64_t count, uint8_t* __restrict keep) {
  for (int64_t row = 0; row < rows; ++row) keep[row] = 0;
  for (int64_t index = 0; index < count; ++index) {
    const uint64_t wanted = list[index];
    for (int64_t row = 0; row < rows; ++row) keep[row] |= values[row] == wanted ? 1 : 0;
  }
}

uint64_t bloom_hash(uint64_t value) {
  // Multiplied into 128 bits and folded, which mixes all bits into all.
  const auto product = static_cast<unsigned __int128>(value ^ 0x9e3779b97f4a7c15) * 0xd6e8feb86659fd93;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

uint64_t bloom_bits(uint64_t hash) {
  return uint64_t{1} << (hash & 63) | uint64_t{1} << (hash >> 6 & 63) | uint64_t{1} << (hash >> 12 & 63) |
         uint64_t{1} << (hash >> 18 & 63);
}

void test_bloom(const uint64_t* __restrict values, int64_t rows, WordRange range, BloomWords bloom,
                uint8_t* __restrict keep) {
  for (int64_t row = 0; row < rows; ++row) {
    const uint64_t hash = bloom_hash(values[row]);
    const bool inside = values[row] - range.low <= range.reach;
    const uint64_t lacking = bloom_bits(hash) & ~bloom.words[hash >> bloom.shift];
    keep[row] = static_cast<uint8_t>(inside & (lacking == 0));
  }
}

void add_bloom(const uint64_t* __restrict values, int64_t rows, BloomWords bloom) {
  for (int64_t row = 0; row < rows; ++row) {
    const uint64_t hash = bloom_hash(values[row]);
    bloom.words[hash >> bloom.shift] |= bloom_bits(hash);
  }
}

void widen(const uint64_t* __restrict values, int64_t rows, int64_t* low, int64_t* high) {
  int64_t smallest = *low;
  int64_t largest = *high;
  for (int64_t row = 0; row < rows; ++row) {
    const auto value = static_cast<int64_t>(values[row]);
    smallest = value < smallest ? value : smallest;
    largest = value > largest ? value : largest;
  }
  *low = smallest;
  *high = largest;
}

#ifdef __AVX2__

// For each byte of eight flags: the places of its ones, then anything.
struct Places {
  uint8_t of[256][8];
};

constexpr Places make_places() {
  Places places{};
  for (int flags = 0; flags < 256; ++flags) {
    int count = 0;
    for (int bit = 0; bit < 8; ++bit) {
      if (flags >> bit & 1) places.of[flags][count++] = static_cast<uint8_t>(bit);
    }
  }
  return places;
}

constexpr Places kPlaces = make_places();

int64_t positions(const uint8_t* keep, int64_t rows, uint32_t first, uint32_t* out) {
  int64_t count = 0;
  int64_t row = 0;
  // Eight are written at a time, of which those beyond the kept ones are written over; they never pass row
  // + 8.
  for (; row + 8 <= rows; row += 8) {
    uint64_t bytes;
    __builtin_memcpy(&bytes, keep + row, 8);
    const uint64_t flags = _pext_u64(bytes, 0x0101010101010101);
    uint64_t places;
    __builtin_memcpy(&places, kPlaces.of[flags], 8);
    const __m256i wide = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<int64_t>(places)));
    const __m256i base = _mm256_set1_epi32(static_cast<int>(first + static_cast<uint32_t>(row)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + count), _mm256_add_epi32(wide, base));
    count += __builtin_popcountll(flags);
  }
  for (; row < rows; ++row) {
    out[count] = first + static_cast<uint32_t>(row);
    count += keep[row];
  }
  return count;
}

#else

int64_t positions(const uint8_t* keep, int64_t rows, uint32_t first, uint32_t* out) {
  int64_t count = 0;
  for (int64_t row = 0; row < rows; ++row) {
    out[count] = first + static_cast<uint32_t>(row);
    count += keep[row];
  }
  return count;
}

#endif

}  // namespace

const KeyFilterLoops& key_filter_loops() {
  static constexpr KeyFilterLoops loops = {test_range, test_bitmap, test_list, test_bloom,
                                           add_bloom,  widen,       positions};
  return loops;
}

}  // namespace bireme::BIREME_ISA
