#include "kernels/group_packed.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "arrow/errors.hpp"
#include "kernels/group_read.hpp"

namespace bireme {

namespace {

constexpr uint64_t kSeeds[KeyLayout::kWordsMax + 1] = {
    0x9e3779b97f4a7c15ULL, 0xd6e8feb86659fd93ULL, 0xa0761d6478bd642fULL,
    0xe7037ed1a0b428dbULL, 0x8ebc6af09c88c6e3ULL, 0x589965cc75374cc3ULL,
    0x1d8e4e27c47d124fULL, 0xeb44accab455d165ULL, 0xca5a826395121157ULL};

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

// Runs `act` with the number of words of a key as a constant.
template <typename Act>
void with_words(int words, Act act) {
  static_assert(KeyLayout::kWordsMax == 8);
  switch (words) {
    case 1:
      return act(std::integral_constant<int, 1>());
    case 2:
      return act(std::integral_constant<int, 2>());
    case 3:
      return act(std::integral_constant<int, 3>());
    case 4:
      return act(std::integral_constant<int, 4>());
    case 5:
      return act(std::integral_constant<int, 5>());
    case 6:
      return act(std::integral_constant<int, 6>());
    case 7:
      return act(std::integral_constant<int, 7>());
    default:
      return act(std::integral_constant<int, 8>());
  }
}

}  // namespace

PackedIndex::PackedIndex(const KeyLayout& layout, bool is_lean) : layout_(layout), is_lean_(is_lean) {
  // One part per column means no wide decimals; ranges of floats' bits are never dense.
  can_be_dense_ = layout.parts.size() == layout.columns.size();
  for (const KeyColumn& column : layout.columns) {
    nullable_.push_back(column.null_word >= 0);
    has_null_bits_ |= column.null_word >= 0;
    if (is_float(column.type.kind)) can_be_dense_ = false;
  }
}

uint64_t PackedIndex::cells_limit() const {
  const auto keys = is_lean_ ? uint64_t{size()} : static_cast<uint64_t>(keys_expected_);
  return std::min(std::max(is_lean_ ? kLeanCellsMin : kCellsMin, kCellsPerKey * keys), uint64_t{1} << 31);
}

uint32_t PackedIndex::add_unlisted() {
  const uint32_t entry = size();
  keys_.resize(keys_.size() + layout_.words, 0);
  unlisted_ = entry;
  return entry;
}

uint64_t PackedIndex::part_of(int part, uint32_t entry) const {
  const KeyPart& place = layout_.parts[static_cast<size_t>(part)];
  const uint64_t raised = keys_[int64_t{entry} * layout_.words + place.word]
                          << (64 - place.shift - place.bits);
  const int down = 64 - place.bits;
  return place.is_signed ? static_cast<uint64_t>(static_cast<int64_t>(raised) >> down) : raised >> down;
}

bool PackedIndex::is_null(int column, uint32_t entry) const {
  const KeyColumn& place = layout_.columns[static_cast<size_t>(column)];
  if (place.null_word < 0) return false;
  return ((keys_[int64_t{entry} * layout_.words + place.null_word] >> place.null_shift) & 1) != 0;
}

void PackedIndex::read_part(int part, const uint32_t* entries, int64_t rows, uint64_t* words,
                            int64_t step) const {
  if (layout_.words == 1 && layout_.parts[0].bits == 64 && step == 1) {
    for (int64_t row = 0; row < rows; ++row) words[row] = keys_[entries[row]];
    return;
  }
  for (int64_t row = 0; row < rows; ++row) words[row * step] = part_of(part, entries[row]);
}

void PackedIndex::adopt(const PackedIndex& other) {
  expect(other.keys_expected_);
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
    for (int64_t row = 0; row < keys.rows; ++row)
      out[row * W] |= uint64_t{valid[row] == 0} << column.null_shift;
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
    const auto* values =
        reinterpret_cast<const int64_t*>(keys.parts[static_cast<size_t>(layout_.columns[column].part)]);
    const uint8_t* valid = keys.valid[column];
    KeyDomain::Range range;
    for (int64_t row = 0; row < keys.rows; ++row) {
      if (valid != nullptr && valid[row] == 0) continue;
      range.low = std::min(range.low, values[row]);
      range.high = std::max(range.high, values[row]);
    }
    ranges[column] = range;
  }
  return cover(ranges);
}

bool PackedIndex::cover(const std::vector<KeyDomain::Range>& ranges) {
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
        if (nullable_[column])
          valid[column][static_cast<size_t>(row)] = is_null(static_cast<int>(column), entry) ? 0 : 1;
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
    with_words(layout_.words, [&](auto words) { hash = hash_key<words()>(key); });
    slots_.find_or_make(hash, [](uint32_t) { return false; }, [&] { return entry; });
  }
}

void PackedIndex::leave_domain() {
  list_all();
  domain_.clear();
}

void PackedIndex::add_by_cell(const KeyVector& keys, const uint64_t* places, uint32_t* entries) {
  if (layout_.parts.size() == 1 && layout_.words == 1 && keys.valid[0] == nullptr) {
    return many_new_ ? add_words_by_cell<true>(keys, places, entries)
                     : add_words_by_cell<false>(keys, places, entries);
  }
  uint32_t* cells = domain_.cells();
  for (int64_t row = 0; row < keys.rows; ++row) {
    uint32_t entry = cells[places[row]];
    if (entry == kNoEntry) [[unlikely]] {
      entry = size();
      append_key(keys, row);
      cells[places[row]] = entry;
    }
    entries[row] = entry;
  }
}

// Keys of one word. Where many are new (clustered rows bring one every few rows) a branch would be guessed
// wrong each time, so every row stores its key where the next new one belongs. A row with the key of the one
// before it takes its entry from there: the cell has only just been stored.
template <bool ManyNew>
void PackedIndex::add_words_by_cell(const KeyVector& keys, const uint64_t* places, uint32_t* entries) {
  uint32_t* cells = domain_.cells();
  const uint64_t mask = ~uint64_t{0} >> (64 - layout_.parts[0].bits);
  const uint64_t* values = keys.parts[0];
  uint64_t* known = keys_.data();
  const uint32_t before = size();
  uint32_t next = before;
  if constexpr (ManyNew) {
    const uint32_t repeated = 0;
    uint64_t place_before = ~uint64_t{0};
    uint32_t entry = 0;
    for (int64_t row = 0; row < keys.rows; ++row) {
      const uint64_t place = places[row];
      const bool same = place == place_before;
      const uint32_t found = *(same ? &repeated : cells + place);
      const bool is_new = found == kNoEntry;
      const uint32_t other = is_new ? next : found;
      entry = same ? entry : other;
      known[next] = values[row] & mask;
      cells[place] = entry;
      entries[row] = entry;
      next += is_new ? 1 : 0;
      place_before = place;
    }
  } else {
    for (int64_t row = 0; row < keys.rows; ++row) {
      uint32_t entry = cells[places[row]];
      if (entry == kNoEntry) [[unlikely]] {
        entry = next;
        known[next++] = values[row] & mask;
        cells[places[row]] = entry;
      }
      entries[row] = entry;
    }
  }
  keys_.resize(next);
  many_new_ = (next - before) * 16 > keys.rows;
}

// The entries that keys with these hashes are likely to have, brought into the cache if they are not likely
// to be there. Whether it has looked: then a key without an entry is not there.
template <int W>
bool PackedIndex::guess(const uint32_t* hashes, int64_t rows, uint32_t* entries) const {
  if (!slots_.guess(hashes, rows, entries, size())) return false;
  for (int64_t row = 0; row < rows; ++row) {
    if (entries[row] != kNoEntry) __builtin_prefetch(keys_.data() + int64_t{entries[row]} * W);
  }
  return true;
}

template <int W>
void PackedIndex::add_by_hash(const KeyVector& keys, uint32_t* entries) {
  uint64_t words[kVectorRows * W];
  uint32_t hashes[kVectorRows];
  slots_.reserve(int64_t{size()} + keys.rows);
  pack<W>(keys, words);
  for (int64_t row = 0; row < keys.rows; ++row) hashes[row] = hash_key<W>(words + row * W);
  guess<W>(hashes, keys.rows, entries);
  for (int64_t row = 0; row < keys.rows; ++row) {
    const uint64_t* key = words + row * W;
    const auto is_key = [&](uint32_t entry) { return equal_keys<W>(keys_.data() + int64_t{entry} * W, key); };
    if (entries[row] != kNoEntry && is_key(entries[row])) continue;
    entries[row] = slots_.find_or_make(hashes[row], is_key, [&] {
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
  const bool has_looked = guess<W>(hashes, keys.rows, entries);
  for (int64_t row = 0; row < keys.rows; ++row) {
    const uint64_t* key = words + row * W;
    const auto is_key = [&](uint32_t entry) { return equal_keys<W>(keys_.data() + int64_t{entry} * W, key); };
    const bool is_found = entries[row] == kNoEntry ? has_looked : is_key(entries[row]);
    if (!is_found) entries[row] = slots_.find(hashes[row], is_key);
  }
}

void PackedIndex::find_or_add(const KeyVector& keys, uint32_t* entries) {
  keys_.reserve(keys_.size() + keys.rows * layout_.words);
  if (can_be_dense_ && (domain_.active() || is_fresh() || become_dense())) {
    uint64_t places[kVectorRows];
    if (domain_.active() && !domain_.locate(layout_, keys, places)) return add_by_cell(keys, places, entries);
    if (grow_domain(keys)) {
      domain_.locate(layout_, keys, places);
      return add_by_cell(keys, places, entries);
    }
    if (domain_.active()) leave_domain();
  }
  with_words(layout_.words, [&](auto words) { add_by_hash<words()>(keys, entries); });
}

void PackedIndex::find(const KeyVector& keys, uint32_t* entries) const {
  if (domain_.active()) {
    uint64_t places[kVectorRows];
    domain_.locate(layout_, keys, places);
    const uint32_t* cells = domain_.cells();
    for (int64_t row = 0; row < keys.rows; ++row) entries[row] = cells[places[row]];
    return;
  }
  with_words(layout_.words, [&](auto words) { find_by_hash<words()>(keys, entries); });
}

}  // namespace bireme
