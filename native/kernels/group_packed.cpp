#include "kernels/group_packed.hpp"

#include <algorithm>
#include <cstring>

#include "arrow/errors.hpp"
#include "kernels/group_loops.hpp"
#include "kernels/group_read.hpp"

namespace bireme {

namespace {

constexpr uint64_t kSeeds[5] = {0x9e3779b97f4a7c15ULL, 0xd6e8feb86659fd93ULL, 0xa0761d6478bd642fULL,
                                0xe7037ed1a0b428dbULL, 0x8ebc6af09c88c6e3ULL};

template <int W>
uint32_t hash_key(const uint64_t* key) {
  uint64_t state = fold_multiply(key[0] ^ kSeeds[0], kSeeds[1]);
  for (int word = 1; word < W; ++word) state = fold_multiply(key[word] ^ state, kSeeds[word + 1]);
  return static_cast<uint32_t>(state >> 32);
}

template <int W>
bool equal_keys(const uint64_t* left, const uint64_t* right) {
  uint64_t differ = 0;
  for (int word = 0; word < W; ++word) differ |= left[word] ^ right[word];
  return differ == 0;
}

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
  std::stable_sort(by_width.begin(), by_width.end(), [](auto* left, auto* right) { return left->bits > right->bits; });
  for (KeyPart* part : by_width) packer.place(part->bits, part->word, part->shift);
  // NULL in the only column is kept apart by the owner, so that a single key of 64 bits stays one word.
  for (KeyColumn& column : columns) {
    if (null_bits && column.nullable && columns.size() > 1) packer.place(1, column.null_word, column.null_shift);
  }
  words = packer.words();
}

// ------------------------------------------------------------------------------------------------ KeyDomain

KeyDomain::Covered KeyDomain::cover(const std::vector<Range>& ranges, const std::vector<bool>& nullable, uint64_t limit) {
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
    const uint64_t room = INT64_MAX - static_cast<uint64_t>(std::max<int64_t>(static_cast<int64_t>(axis.base), 0));
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
    any_outside |= group_loops().add_places(keys.parts[static_cast<size_t>(layout.columns[column].part)], keys.rows, axis.base,
                                            axis.span - first, first, axis.stride, column == 0, cells);
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

// ----------------------------------------------------------------------------------------------- PackedIndex

PackedIndex::PackedIndex(const KeyLayout& layout) : layout_(layout) {
  // One part per column means no wide decimals; ranges of floats' bits are never dense.
  can_be_dense_ = layout.parts.size() == layout.columns.size();
  for (const KeyColumn& column : layout.columns) {
    nullable_.push_back(column.null_word >= 0);
    has_null_bits_ |= column.null_word >= 0;
    if (is_float(column.type.kind)) can_be_dense_ = false;
  }
}

uint64_t PackedIndex::cells_limit() const {
  return std::min(std::max(kCellsMin, kCellsPerRow * static_cast<uint64_t>(rows_seen_)), uint64_t{1} << 31);
}

uint32_t PackedIndex::add_unlisted() {
  const uint32_t entry = size();
  keys_.resize(keys_.size() + layout_.words, 0);
  unlisted_ = entry;
  return entry;
}

uint64_t PackedIndex::part_of(int part, uint32_t entry) const {
  const KeyPart& place = layout_.parts[static_cast<size_t>(part)];
  const uint64_t raised = keys_[int64_t{entry} * layout_.words + place.word] << (64 - place.shift - place.bits);
  const int down = 64 - place.bits;
  return place.is_signed ? static_cast<uint64_t>(static_cast<int64_t>(raised) >> down) : raised >> down;
}

bool PackedIndex::is_null(int column, uint32_t entry) const {
  const KeyColumn& place = layout_.columns[static_cast<size_t>(column)];
  if (place.null_word < 0) return false;
  return ((keys_[int64_t{entry} * layout_.words + place.null_word] >> place.null_shift) & 1) != 0;
}

void PackedIndex::read_part(int part, const uint32_t* entries, int64_t rows, uint64_t* words, int64_t step) const {
  if (layout_.words == 1 && layout_.parts[0].bits == 64 && step == 1) {
    for (int64_t row = 0; row < rows; ++row) words[row] = keys_[entries[row]];
    return;
  }
  for (int64_t row = 0; row < rows; ++row) words[row * step] = part_of(part, entries[row]);
}

void PackedIndex::adopt(const PackedIndex& other) {
  expect(other.rows_seen_);
  std::vector<std::vector<uint64_t>> words(layout_.parts.size(), std::vector<uint64_t>(kVectorRows));
  KeyVector vector;
  for (const auto& part : words) vector.parts.push_back(part.data());
  vector.valid.resize(layout_.columns.size(), nullptr);
  uint32_t entries[kVectorRows];
  for (uint32_t begin = 0; begin < other.size(); begin += kVectorRows) {
    vector.rows = std::min<int64_t>(kVectorRows, other.size() - begin);
    for (int64_t row = 0; row < vector.rows; ++row) entries[row] = begin + static_cast<uint32_t>(row);
    for (size_t part = 0; part < words.size(); ++part) {
      other.read_part(static_cast<int>(part), entries, vector.rows, words[part].data(), 1);
    }
    find_or_add(vector, entries);
  }
  if (size() != other.size()) throw EngineBug("an index of keys lost some when it made room for NULL");
}

template <int W>
void PackedIndex::pack(const KeyVector& keys, uint64_t* words) const {
  std::memset(words, 0, static_cast<size_t>(keys.rows) * W * 8);
  for (size_t index = 0; index < layout_.parts.size(); ++index) {
    const KeyPart& part = layout_.parts[index];
    const uint64_t* values = keys.parts[index];
    const uint8_t* valid = keys.valid[static_cast<size_t>(part.column)];
    const uint64_t mask = ~uint64_t{0} >> (64 - part.bits);
    uint64_t* out = words + part.word;
    if (valid == nullptr) {
      for (int64_t row = 0; row < keys.rows; ++row) out[row * W] |= (values[row] & mask) << part.shift;
    } else {
      for (int64_t row = 0; row < keys.rows; ++row) {
        out[row * W] |= valid[row] != 0 ? (values[row] & mask) << part.shift : 0;
      }
    }
  }
  for (size_t index = 0; index < layout_.columns.size(); ++index) {
    const KeyColumn& column = layout_.columns[index];
    const uint8_t* valid = keys.valid[index];
    if (valid == nullptr || column.null_word < 0) continue;
    uint64_t* out = words + column.null_word;
    for (int64_t row = 0; row < keys.rows; ++row) out[row * W] |= uint64_t{valid[row] == 0} << column.null_shift;
  }
}

void PackedIndex::append_key(const KeyVector& keys, int64_t row) {
  uint64_t words[KeyLayout::kWordsMax] = {};
  for (size_t index = 0; index < layout_.parts.size(); ++index) {
    const KeyPart& part = layout_.parts[index];
    const uint8_t* valid = keys.valid[static_cast<size_t>(part.column)];
    if (valid != nullptr && valid[row] == 0) continue;
    words[part.word] |= (keys.parts[index][row] & (~uint64_t{0} >> (64 - part.bits))) << part.shift;
  }
  for (size_t index = 0; index < layout_.columns.size(); ++index) {
    const KeyColumn& column = layout_.columns[index];
    if (column.null_word < 0 || keys.valid[index] == nullptr || keys.valid[index][row] != 0) continue;
    words[column.null_word] |= uint64_t{1} << column.null_shift;
  }
  for (int word = 0; word < layout_.words; ++word) keys_.append(words[word]);
}

bool PackedIndex::grow_domain(const KeyVector& keys) {
  std::vector<KeyDomain::Range> ranges(layout_.columns.size());
  for (size_t column = 0; column < ranges.size(); ++column) {
    const auto* values = reinterpret_cast<const int64_t*>(keys.parts[static_cast<size_t>(layout_.columns[column].part)]);
    const uint8_t* valid = keys.valid[column];
    KeyDomain::Range range;
    for (int64_t row = 0; row < keys.rows; ++row) {
      if (valid != nullptr && valid[row] == 0) continue;
      range.low = std::min(range.low, values[row]);
      range.high = std::max(range.high, values[row]);
    }
    ranges[column] = range;
  }
  const auto covered = domain_.cover(ranges, nullable_, cells_limit());
  if (covered == KeyDomain::Covered::Anew) fill_domain();
  return covered != KeyDomain::Covered::No;
}

void PackedIndex::fill_domain() {
  std::vector<std::vector<uint64_t>> words(layout_.columns.size(), std::vector<uint64_t>(kVectorRows));
  std::vector<std::vector<uint8_t>> valid(layout_.columns.size(), std::vector<uint8_t>(kVectorRows));
  KeyVector vector;
  for (size_t column = 0; column < layout_.columns.size(); ++column) {
    vector.parts.push_back(words[column].data());
    vector.valid.push_back(nullable_[column] ? valid[column].data() : nullptr);
  }
  uint64_t places[kVectorRows];
  for (uint32_t begin = 0; begin < size(); begin += kVectorRows) {
    vector.rows = std::min<int64_t>(kVectorRows, size() - begin);
    for (size_t column = 0; column < layout_.columns.size(); ++column) {
      for (int64_t row = 0; row < vector.rows; ++row) {
        const auto entry = static_cast<uint32_t>(begin + row);
        words[column][static_cast<size_t>(row)] = part_of(static_cast<int>(column), entry);
        if (nullable_[column]) valid[column][static_cast<size_t>(row)] = is_null(static_cast<int>(column), entry) ? 0 : 1;
      }
    }
    domain_.locate(layout_, vector, places);
    for (int64_t row = 0; row < vector.rows; ++row) {
      const auto entry = static_cast<uint32_t>(begin + row);
      if (entry == unlisted_) continue;
      domain_.cells()[places[row]] = entry;
    }
  }
}

// Whether what the slots hold has turned out to be dense; then they are given up.
bool PackedIndex::become_dense() {
  if (layout_.columns.size() != 1 || size() < dense_check_) return false;
  dense_check_ = 2 * int64_t{size()};
  KeyDomain::Range range;
  for (uint32_t entry = 0; entry < size(); ++entry) {
    if (entry == unlisted_) continue;
    const auto value = static_cast<int64_t>(part_of(0, entry));
    range.low = std::min(range.low, value);
    range.high = std::max(range.high, value);
  }
  if (range.low > range.high) return false;
  if (domain_.cover({range}, nullable_, cells_limit()) == KeyDomain::Covered::No) return false;
  fill_domain();
  slots_.clear();
  return true;
}

void PackedIndex::list_all() {
  slots_.reserve(size());
  for (uint32_t entry = 0; entry < size(); ++entry) {
    if (entry == unlisted_) continue;
    const uint64_t* key = keys_.data() + int64_t{entry} * layout_.words;
    uint32_t hash = 0;
    switch (layout_.words) {
      case 1: hash = hash_key<1>(key); break;
      case 2: hash = hash_key<2>(key); break;
      case 3: hash = hash_key<3>(key); break;
      default: hash = hash_key<4>(key); break;
    }
    slots_.find_or_make(hash, [](uint32_t) { return false; }, [&] { return entry; });
  }
}

void PackedIndex::leave_domain() {
  list_all();
  domain_.clear();
}

void PackedIndex::add_by_cell(const KeyVector& keys, const uint64_t* places, uint32_t* entries) {
  uint32_t* cells = domain_.cells();
  const bool simple = layout_.parts.size() == 1 && layout_.parts[0].bits == 64;
  for (int64_t row = 0; row < keys.rows; ++row) {
    uint32_t entry = cells[places[row]];
    if (entry == kNoEntry) [[unlikely]] {
      entry = size();
      if (simple) {
        keys_.append(keys.parts[0][row]);
      } else {
        append_key(keys, row);
      }
      cells[places[row]] = entry;
    }
    entries[row] = entry;
  }
}

template <int W>
void PackedIndex::add_by_hash(const KeyVector& keys, uint32_t* entries) {
  uint64_t words[kVectorRows * W];
  uint32_t hashes[kVectorRows];
  slots_.reserve(int64_t{size()} + keys.rows);
  pack<W>(keys, words);
  for (int64_t row = 0; row < keys.rows; ++row) hashes[row] = hash_key<W>(words + row * W);
  if (size() > kPrefetchEntries) {
    for (int64_t row = 0; row < keys.rows; ++row) slots_.prefetch(hashes[row]);
    for (int64_t row = 0; row < keys.rows; ++row) {
      const uint32_t entry = slots_.peek(hashes[row]);
      if (entry != kNoEntry) __builtin_prefetch(keys_.data() + int64_t{entry} * W);
    }
  }
  for (int64_t row = 0; row < keys.rows; ++row) {
    const uint64_t* key = words + row * W;
    entries[row] = slots_.find_or_make(
        hashes[row], [&](uint32_t entry) { return equal_keys<W>(keys_.data() + int64_t{entry} * W, key); },
        [&] {
          const uint32_t entry = size();
          for (int word = 0; word < W; ++word) keys_.append(key[word]);
          return entry;
        });
  }
}

template <int W>
void PackedIndex::find_by_hash(const KeyVector& keys, uint32_t* entries) const {
  uint64_t words[kVectorRows * W];
  uint32_t hashes[kVectorRows];
  if (size() == 0) {
    std::fill(entries, entries + keys.rows, kNoEntry);
    return;
  }
  pack<W>(keys, words);
  for (int64_t row = 0; row < keys.rows; ++row) hashes[row] = hash_key<W>(words + row * W);
  if (size() > kPrefetchEntries) {
    for (int64_t row = 0; row < keys.rows; ++row) slots_.prefetch(hashes[row]);
    for (int64_t row = 0; row < keys.rows; ++row) {
      const uint32_t entry = slots_.peek(hashes[row]);
      if (entry != kNoEntry) __builtin_prefetch(keys_.data() + int64_t{entry} * W);
    }
  }
  for (int64_t row = 0; row < keys.rows; ++row) {
    const uint64_t* key = words + row * W;
    entries[row] =
        slots_.find(hashes[row], [&](uint32_t entry) { return equal_keys<W>(keys_.data() + int64_t{entry} * W, key); });
  }
}

void PackedIndex::find_or_add(const KeyVector& keys, uint32_t* entries) {
  keys_.reserve(keys_.size() + keys.rows * layout_.words);
  const bool first = size() == 0 || (size() == 1 && unlisted_ == 0);
  if (can_be_dense_ && (domain_.active() || first || become_dense())) {
    uint64_t places[kVectorRows];
    if (domain_.active() && !domain_.locate(layout_, keys, places)) return add_by_cell(keys, places, entries);
    if (grow_domain(keys)) {
      domain_.locate(layout_, keys, places);
      return add_by_cell(keys, places, entries);
    }
    if (domain_.active()) leave_domain();
  }
  switch (layout_.words) {
    case 1: return add_by_hash<1>(keys, entries);
    case 2: return add_by_hash<2>(keys, entries);
    case 3: return add_by_hash<3>(keys, entries);
    default: return add_by_hash<4>(keys, entries);
  }
}

void PackedIndex::find(const KeyVector& keys, uint32_t* entries) const {
  if (domain_.active()) {
    uint64_t places[kVectorRows];
    domain_.locate(layout_, keys, places);
    const uint32_t* cells = domain_.cells();
    for (int64_t row = 0; row < keys.rows; ++row) entries[row] = cells[places[row]];
    return;
  }
  switch (layout_.words) {
    case 1: return find_by_hash<1>(keys, entries);
    case 2: return find_by_hash<2>(keys, entries);
    case 3: return find_by_hash<3>(keys, entries);
    default: return find_by_hash<4>(keys, entries);
  }
}

}  // namespace bireme
