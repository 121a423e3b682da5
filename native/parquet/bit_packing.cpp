#include "parquet/bit_packing.hpp"

#include <algorithm>

#include "parquet/loops.hpp"

namespace bireme::parquet {

namespace {

constexpr int64_t kUnpackSlackBytes = 16;  // see Loops::unpack

}  // namespace

uint32_t unpack_bits(const uint8_t* packed, const uint8_t* readable_end, int width, int64_t first,
                     int64_t count, uint32_t* out) {
  uint32_t largest = 0;
  int64_t done = 0;
  const auto one = [&] {
    out[done] = static_cast<uint32_t>(packed_at(packed, readable_end, width, first + done));
    largest = std::max(largest, out[done++]);
  };
  while (done < count && ((first + done) & 7) != 0) one();
  const uint8_t* start = packed + (first + done) / 8 * width;
  const int64_t readable = readable_end - start - kUnpackSlackBytes;
  int64_t groups = (count - done) / 8;
  if (groups * width > readable) [[unlikely]]
    groups = readable / width;
  if (groups > 0) {
    largest = std::max(largest, loops().unpack(start, width, groups, out + done));
    done += 8 * groups;
  }
  while (done < count) one();
  return largest;
}

}  // namespace bireme::parquet
