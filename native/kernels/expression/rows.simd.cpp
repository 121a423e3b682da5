// Moving rows: gathers, blends, masks and bitmaps.
#include "kernels/expression/loops.hpp"

namespace bireme::BIREME_ISA {

namespace {

struct Sixteen {
  uint64_t low, high;
};

// Rows ascend without repetition, so eight that span eight are in sequence and are copied as one block:
// filters mostly keep long runs of rows, or few.
template <typename T>
void gather(const void* from, const uint32_t* __restrict rows, int64_t count, void* to) {
  const T* __restrict source = static_cast<const T*>(from);
  T* __restrict out = static_cast<T*>(to);
  int64_t index = 0;
  for (; index + 8 <= count; index += 8) {
    const uint32_t first = rows[index];
    if (rows[index + 7] - first == 7) {
      __builtin_memcpy(out + index, source + first, 8 * sizeof(T));
    } else {
      for (int lane = 0; lane < 8; ++lane) out[index + lane] = source[rows[index + lane]];
    }
  }
  for (; index < count; ++index) out[index] = source[rows[index]];
}

template <typename T>
void look_up(const void* from, const uint32_t* __restrict rows, int64_t count, void* to) {
  const T* __restrict source = static_cast<const T*>(from);
  T* __restrict out = static_cast<T*>(to);
  for (int64_t index = 0; index < count; ++index) out[index] = source[rows[index]];
}

template <typename T, bool kStepA, bool kStepB>
void blend_steps(const uint8_t* __restrict mask, const T* a, const T* b, int64_t count, T* __restrict out) {
  for (int64_t row = 0; row < count; ++row) {
    const T x = a[kStepA ? row : 0];
    const T y = b[kStepB ? row : 0];
    out[row] = mask[row] ? x : y;
  }
}

template <typename T>
void blend(const uint8_t* mask, const void* first, int64_t a_step, const void* second, int64_t b_step,
           int64_t count, void* to) {
  const T* a = static_cast<const T*>(first);
  const T* b = static_cast<const T*>(second);
  T* out = static_cast<T*>(to);
  if (a_step != 0 && b_step != 0) return blend_steps<T, true, true>(mask, a, b, count, out);
  if (a_step != 0) return blend_steps<T, true, false>(mask, a, b, count, out);
  if (b_step != 0) return blend_steps<T, false, true>(mask, a, b, count, out);
  blend_steps<T, false, false>(mask, a, b, count, out);
}

void and_bytes(const uint8_t* a, const uint8_t* b, uint8_t* out, int64_t count) {
  for (int64_t row = 0; row < count; ++row) out[row] = a[row] & b[row];
}

void or_bytes(const uint8_t* a, const uint8_t* b, uint8_t* out, int64_t count) {
  for (int64_t row = 0; row < count; ++row) out[row] = a[row] | b[row];
}

void and_not_bytes(const uint8_t* a, const uint8_t* b, uint8_t* out, int64_t count) {
  for (int64_t row = 0; row < count; ++row) out[row] = a[row] & (b[row] ^ 1);
}

void not_bytes(const uint8_t* a, uint8_t* out, int64_t count) {
  for (int64_t row = 0; row < count; ++row) out[row] = a[row] ^ 1;
}

uint64_t load_word(const uint8_t* bytes) {
  uint64_t word;
  __builtin_memcpy(&word, bytes, 8);
  return word;
}

int64_t count_bytes(const uint8_t* a, int64_t count) {
  int64_t total = 0;
  for (int64_t row = 0; row < count; ++row) total += a[row];
  return total;
}

int64_t select(const uint8_t* mask, int64_t count, uint32_t first, uint32_t* out) {
  int64_t kept = 0;
  int64_t row = 0;
  for (; row + 8 <= count; row += 8) {
    const uint64_t word = load_word(mask + row);
    if (word == 0) continue;
    const uint32_t base = first + static_cast<uint32_t>(row);
    if (word == uint64_t{0x0101010101010101}) {
      for (uint32_t lane = 0; lane < 8; ++lane) out[kept + lane] = base + lane;
      kept += 8;
      continue;
    }
    for (uint32_t lane = 0; lane < 8; ++lane) {
      out[kept] = base + lane;
      kept += static_cast<int64_t>((word >> (8 * lane)) & 1);
    }
  }
  for (; row < count; ++row) {
    if (mask[row]) out[kept++] = first + static_cast<uint32_t>(row);
  }
  return kept;
}

int64_t refine(const uint8_t* mask, int64_t count, uint32_t* rows) {
  int64_t kept = 0;
  for (int64_t row = 0; row < count; ++row) {
    rows[kept] = rows[row];
    kept += mask[row];
  }
  return kept;
}

// Eight bits to eight bytes: multiply the byte into every lane, keep lane i's bit i, and turn non-zero into
// one.
uint64_t spread(uint8_t bits) {
  const uint64_t lanes = (bits * uint64_t{0x0101010101010101}) & uint64_t{0x8040201008040201};
  return ((lanes + uint64_t{0x7f7f7f7f7f7f7f7f}) | lanes) >> 7 & uint64_t{0x0101010101010101};
}

void unpack(const uint8_t* bits, int64_t bit_offset, int64_t count, uint8_t* out) {
  bits += bit_offset >> 3;
  const int shift = static_cast<int>(bit_offset & 7);
  int64_t row = 0;
  for (; row + 8 <= count; row += 8, ++bits) {
    unsigned byte = static_cast<unsigned>(bits[0]) >> shift;
    if (shift != 0) byte |= static_cast<unsigned>(bits[1]) << (8 - shift);
    const uint64_t lanes = spread(static_cast<uint8_t>(byte));
    __builtin_memcpy(out + row, &lanes, 8);
  }
  for (int bit = shift; row < count; ++row, ++bit) out[row] = (bits[bit >> 3] >> (bit & 7)) & 1;
}

void pack(const uint8_t* bytes, int64_t count, uint8_t* bits) {
  int64_t row = 0;
  for (; row + 8 <= count; row += 8) {
    bits[row >> 3] = static_cast<uint8_t>((load_word(bytes + row) * uint64_t{0x0102040810204080}) >> 56);
  }
  if (row == count) return;
  unsigned last = 0;
  for (int bit = 0; row + bit < count; ++bit) last |= static_cast<unsigned>(bytes[row + bit]) << bit;
  bits[row >> 3] = static_cast<uint8_t>(last);
}

void gather_bits(const uint8_t* bits, int64_t bit_offset, const uint32_t* rows, int64_t count, uint8_t* out) {
  for (int64_t index = 0; index < count; ++index) {
    const int64_t bit = bit_offset + rows[index];
    out[index] = (bits[bit >> 3] >> (bit & 7)) & 1;
  }
}

}  // namespace

void fill_rows(Loops& loops) {
  loops.look_up[0] = look_up<uint8_t>;
  loops.look_up[1] = look_up<uint16_t>;
  loops.look_up[2] = look_up<uint32_t>;
  loops.look_up[3] = look_up<uint64_t>;
  loops.look_up[4] = look_up<Sixteen>;
  loops.gather[0] = gather<uint8_t>;
  loops.gather[1] = gather<uint16_t>;
  loops.gather[2] = gather<uint32_t>;
  loops.gather[3] = gather<uint64_t>;
  loops.gather[4] = gather<Sixteen>;
  loops.blend[0] = blend<uint8_t>;
  loops.blend[1] = blend<uint16_t>;
  loops.blend[2] = blend<uint32_t>;
  loops.blend[3] = blend<uint64_t>;
  loops.blend[4] = blend<Sixteen>;
  loops.and_bytes = and_bytes;
  loops.or_bytes = or_bytes;
  loops.and_not_bytes = and_not_bytes;
  loops.not_bytes = not_bytes;
  loops.count_bytes = count_bytes;
  loops.select = select;
  loops.refine = refine;
  loops.unpack = unpack;
  loops.pack = pack;
  loops.gather_bits = gather_bits;
}

}  // namespace bireme::BIREME_ISA
