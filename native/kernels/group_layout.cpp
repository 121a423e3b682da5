#include "kernels/group_layout.hpp"

#include <algorithm>

#include "kernels/group_loops.hpp"
#include "kernels/group_read.hpp"

namespace bireme {

namespace {

int bits_of(const Type& type) {
  if (is_string(type.kind)) return 32;
  if (type.kind == Kind::Bool || type.kind == Kind::Null) return 1;
  if (is_float(type.kind)) return 64;
  return type.kind == Kind::Decimal128 ? 128 : 8 * width_of(type.kind);
}

bool is_signed_kind(const Type& type) {
  switch (type.kind) {
    case Kind::Bool:
    case Kind::Null:
    case Kind::UInt8:
    case Kind::UInt16:
    case Kind::UInt32:
    case Kind::String:
    case Kind::Binary:
      return false;
    default:
      return true;
  }
}

// Puts fields into 64-bit words, each into the first word with room.
class Packer {
 public:
  void place(int bits, int& word, int& shift) {
    for (size_t index = 0;; ++index) {
      if (index == used_.size()) used_.push_back(0);
      if (used_[index] + bits > 64) continue;
      word = static_cast<int>(index);
      shift = used_[index];
      used_[index] += bits;
      return;
    }
  }
  int words() const { return static_cast<int>(used_.size()); }

 private:
  std::vector<int> used_;
};

}  // namespace

KeyLayout::KeyLayout(const std::vector<Type>& types, const std::vector<bool>& nullable, bool null_bits) {
  for (size_t index = 0; index < types.size(); ++index) {
    KeyColumn column;
    column.type = types[index];
    column.nullable = nullable[index];
    column.interned = is_string(column.type.kind);
    column.part = static_cast<int>(parts.size());
    KeyPart part;
    part.column = static_cast<int>(index);
    part.bits = std::min(bits_of(column.type), 64);
    part.is_signed = is_signed_kind(column.type);
    parts.push_back(part);
    if (column.type.kind == Kind::Decimal128) parts.push_back(part);
    columns.push_back(column);
  }
  Packer packer;
  std::vector<KeyPart*> by_width;
  for (KeyPart& part : parts) by_width.push_back(&part);
  std::stable_sort(by_width.begin(), by_width.end(),
                   [](auto* left, auto* right) { return left->bits > right->bits; });
  for (KeyPart* part : by_width) packer.place(part->bits, part->word, part->shift);
  // NULL in the only column is kept apart by the owner, so that a single key of 64 bits stays one word.
  for (KeyColumn& column : columns) {
    if (null_bits && column.nullable && columns.size() > 1)
      packer.place(1, column.null_word, column.null_shift);
  }
  words = packer.words();
}

// ------------------------------------------------------------------------------------------------ KeyDomain

KeyDomain::Covered KeyDomain::cover(const std::vector<Range>& ranges, const std::vector<bool>& nullable,
                                    uint64_t limit) {
  std::vector<Axis> axes(ranges.size());
  uint64_t cells = 1;
  std::vector<uint64_t> grown(ranges.size(), 0);
  for (size_t index = 0; index < ranges.size(); ++index) {
    Axis& axis = axes[index];
    Range range = ranges[index];
    axis.nullable = nullable[index];
    const uint64_t null_codes = axis.nullable ? 1 : 0;
    if (active() && axes_[index].span > null_codes) {
      const Axis& old = axes_[index];
      const auto low = static_cast<int64_t>(old.base);
      const auto high = static_cast<int64_t>(old.base + (old.span - null_codes) - 1);
      if (range.low <= range.high && (range.low < low || range.high > high)) grown[index] = old.span / 2 + 1;
      range.low = std::min(range.low, low);
      range.high = std::max(range.high, high);
    }
    axis.base = static_cast<uint64_t>(range.low);
    axis.span = range.low > range.high ? 0 : static_cast<uint64_t>(range.high) - axis.base + 1;
    if (range.low <= range.high && (axis.span == 0 || axis.span > limit)) return Covered::No;
    axis.span = std::max<uint64_t>(axis.span + null_codes, 1);
    if (axis.span > limit / cells) return Covered::No;
    cells *= axis.span;
  }
  for (size_t index = 0; index < axes.size(); ++index) {
    // Room to grow upward: keys that come in order would otherwise ask for more with every vector.
    Axis& axis = axes[index];
    const uint64_t others = cells / axis.span;
    const uint64_t room =
        INT64_MAX - static_cast<uint64_t>(std::max<int64_t>(static_cast<int64_t>(axis.base), 0));
    const uint64_t wanted = std::min(axis.span + grown[index], room);
    if (wanted <= axis.span || wanted > limit / others) continue;
    axis.span = wanted;
    cells = others * wanted;
  }
  uint64_t stride = 1;
  for (Axis& axis : axes) {
    axis.stride = stride;
    stride *= axis.span;
  }
  const auto size = static_cast<int64_t>(cells) + 1;
  if (extends(axes)) {
    cells_.resize(size, kNoEntry);
    axes_ = std::move(axes);
    return Covered::Further;
  }
  Cells<uint32_t> fresh;
  fresh.resize(size, kNoEntry);
  std::swap(cells_, fresh);
  axes_ = std::move(axes);
  return Covered::Anew;
}

// Whether all cells keep their places under the new axes: only the last one is longer, at its upper end.
bool KeyDomain::extends(const std::vector<Axis>& axes) const {
  if (axes_.size() != axes.size()) return false;
  for (size_t index = 0; index < axes.size(); ++index) {
    if (axes_[index].base != axes[index].base || axes_[index].stride != axes[index].stride) return false;
  }
  return axes_.back().span <= axes.back().span;
}

bool KeyDomain::locate(const KeyLayout& layout, const KeyVector& keys, uint64_t* cells) const {
  uint64_t any_outside = 0;
  for (size_t column = 0; column < axes_.size(); ++column) {
    if (keys.valid[column] != nullptr) {
      any_outside = 1;
      break;
    }
    const Axis& axis = axes_[column];
    const uint64_t first = axis.nullable ? 1 : 0;
    any_outside |=
        group_loops().add_places(keys.parts[static_cast<size_t>(layout.columns[column].part)], keys.rows,
                                 axis.base, axis.span - first, first, axis.stride, column == 0, cells);
  }
  if (any_outside == 0) return false;
  locate_each(layout, keys, cells);
  const uint64_t outside_cell = static_cast<uint64_t>(cells_.size()) - 1;
  return std::find(cells, cells + keys.rows, outside_cell) != cells + keys.rows;
}

// As `locate`, key by key: for keys of which some are NULL or outside.
void KeyDomain::locate_each(const KeyLayout& layout, const KeyVector& keys, uint64_t* cells) const {
  const uint64_t outside_cell = static_cast<uint64_t>(cells_.size()) - 1;
  uint8_t outside[kVectorRows];
  for (size_t column = 0; column < axes_.size(); ++column) {
    const Axis& axis = axes_[column];
    const uint64_t* values = keys.parts[static_cast<size_t>(layout.columns[column].part)];
    const uint8_t* valid = keys.valid[column];
    const uint64_t first = axis.nullable ? 1 : 0;
    const uint64_t codes = axis.span - first;
    for (int64_t row = 0; row < keys.rows; ++row) {
      const uint64_t offset = values[row] - axis.base;
      const bool null = valid != nullptr && valid[row] == 0;
      const uint8_t out = !null && offset >= codes ? 1 : 0;
      const uint64_t code = null ? 0 : (offset + first) * axis.stride;
      cells[row] = column == 0 ? code : cells[row] + code;
      outside[row] = column == 0 ? out : static_cast<uint8_t>(outside[row] | out);
    }
  }
  for (int64_t row = 0; row < keys.rows; ++row) cells[row] = outside[row] != 0 ? outside_cell : cells[row];
}

}  // namespace bireme
