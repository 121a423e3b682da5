#include "scan/compact.hpp"

#include <bit>

#include "kernels/expression/loops.hpp"
#include "kernels/take.hpp"

namespace bireme::scan {

namespace {

Buffer compact_bits(const Buffer& bits, const uint32_t* places, int64_t count) {
  Buffer bytes(count);
  loops().gather_bits(bits.as<uint8_t>(), 0, places, count, bytes.as<uint8_t>());
  Buffer packed(bitmap_bytes(count));
  loops().pack(bytes.as<uint8_t>(), count, packed.as<uint8_t>());
  return packed;
}

}  // namespace

OutputColumn compact(OutputColumn column, const uint32_t* places, int64_t count) {
  const auto width = static_cast<uint32_t>(width_of(column.type.kind));
  if (is_string(column.type.kind)) {
    const Column positions{.type = simple_type(Kind::Int32), .rows = count, .values = places};
    return take(view_of(column), positions);
  }
  OutputColumn kept{.type = column.type, .rows = count};
  if (column.validity) {
    kept.validity = compact_bits(column.validity, places, count);
    kept.null_count = -1;
  }
  if (width > 0) {
    kept.values = Buffer(count * width);
    loops().gather[std::countr_zero(width)](column.values.data(), places, count, kept.values.data());
  } else if (column.type.kind == Kind::Bool) {
    kept.values = compact_bits(column.values, places, count);
  }
  return kept;
}

}  // namespace bireme::scan
