#include "kernels/join_table.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "arrow/errors.hpp"
#include "kernels/group_read.hpp"
#include "kernels/join_build.hpp"

namespace bireme {

namespace {

std::vector<const Column*> pointers_to(std::span<const Column> columns) {
  std::vector<const Column*> pointers;
  for (const Column& column : columns) pointers.push_back(&column);
  return pointers;
}

std::vector<Type> types_of(const Batch& batch) {
  std::vector<Type> types;
  for (const Column& column : batch.columns()) types.push_back(column.type);
  return types;
}

OutputColumn row_numbers(int64_t rows) {
  OutputColumn column;
  column.type = simple_type(Kind::Int64);
  column.rows = rows;
  column.values = Buffer(rows * 8);
  return column;
}

}  // namespace

JoinTable::JoinTable(std::vector<Type> types, int null_equal_count, int64_t rows)
    : types_(std::move(types)), null_equal_count_(null_equal_count), chains_(rows) {
  if (rows > kBuildRowsMax) throw Unsupported("a join table of 2^31 rows or more; partition the join");
  for (const Type& type : types_) {
    if (!is_canonical(type.kind)) throw Unsupported("no native keys of Arrow format '" + type.format + "'");
  }
}

JoinTable::JoinTable(const Batch& keys, int null_equal_count)
    : JoinTable(types_of(keys), null_equal_count, keys.rows()) {
  const JoinBuild::Part part{keys.columns(), 0, keys.rows(),
                             facts_of(keys.columns(), keys.rows(), null_equal_count)};
  JoinBuild::build_at_once(*this, {&part, 1});
}

int64_t JoinTable::nbytes() const {
  int64_t total = chains_.nbytes() + links_.nbytes() + filter_bytes_;
  if (lookup_ != nullptr) total += lookup_->nbytes();
  if (index_ != nullptr) total += index_->nbytes();
  if (ranges_ != nullptr) total += ranges_->nbytes();
  return total;
}

std::string JoinTable::form() const {
  std::string form = lookup_ != nullptr  ? lookup_->form()
                     : index_ != nullptr ? "an index of keys"
                                         : "every row";
  const bool has_keys = lookup_ != nullptr || index_ != nullptr;
  if (has_keys && !is_unique()) form += ", keys repeat";
  if (ranges_ != nullptr) form += ", in the order of ranges";
  return form;
}

// Keys of a build side that have no words get numbers, one chunk after the other.
void JoinTable::build_index(const std::vector<std::span<const Column>>& chunks) {
  std::vector<bool> nullable;
  for (size_t column = 0; column < types_.size(); ++column) {
    nullable.push_back(static_cast<int>(column) < null_equal_count_);
  }
  index_ = std::make_unique<KeyIndex>(types_, nullable);
  KeyRows::expect(*index_, rows());
  Cells<uint32_t> entries;
  entries.resize(rows());
  int64_t first = 0;
  for (const std::span<const Column>& chunk : chunks) {
    KeyRows reader(*index_, pointers_to(chunk));
    const int64_t end = chunk[0].rows;
    for (int64_t begin = 0; begin < end; begin += kVectorRows) {
      reader.find_or_add(*index_, begin, std::min(kVectorRows, end - begin), entries.data() + first + begin);
    }
    first += end;
  }
  links_.clear();
  links_.resize(index_->size(), kNoRow);
  ChainWriter chain(chains_);
  for (int64_t row = rows() - 1; row >= 0; --row) {
    if (entries[row] == kNoEntry) continue;
    links_[entries[row]] = chain.before(links_[entries[row]], static_cast<uint32_t>(row));
  }
}

void JoinTable::chain_everything() {
  links_.clear();
  links_.resize(1, kNoRow);
  ChainWriter chain(chains_);
  for (int64_t row = rows() - 1; row >= 0; --row)
    links_[0] = chain.before(links_[0], static_cast<uint32_t>(row));
}

void JoinTable::index_ranges(const Batch& keys, Batch ranges, bool is_bounded_above) {
  if (keys.rows() != rows() || ranges.rows() != rows())
    throw EngineBug("a join table got ranges of another number of rows");
  Cells<uint32_t> heads;
  if (!types_.empty()) {
    heads.resize(rows());
    JoinHeads reader(*this, keys.columns());
    for (int64_t begin = 0; begin < rows(); begin += kVectorRows)
      reader.find(begin, std::min(kVectorRows, rows() - begin), heads.data() + begin);
    for (int64_t row = 0; row < rows(); ++row) {
      if (heads[row] != kNoRow) heads[row] = row_of(heads[row]);
    }
  }
  ranges_ = std::make_unique<const RangeIndex>(heads, std::move(ranges), is_bounded_above);
}

std::shared_ptr<const KeyFilter> JoinTable::key_filter() const {
  std::call_once(filter_once_, [this] {
    if (null_equal_count_ > 0 || types_.empty()) return;
    if (lookup_ != nullptr) {
      filter_ =
          make_key_filter(types_, words_, [this](const WordVisit& visit) { lookup_->each_word(visit); });
    } else {
      Cells<uint32_t> all;
      for (uint32_t entry = 0; entry < index_->size(); ++entry) all.push_back(entry);
      std::vector<OutputColumn> columns = index_->columns(all.data(), all.size());
      ArrowArray array;
      ArrowSchema schema;
      export_batch(std::move(columns), all.size(), &array, &schema);
      filter_ = make_key_filter(Batch::take_over(&array, &schema));
    }
    if (filter_ != nullptr) filter_bytes_ = filter_->nbytes();
  });
  return filter_;
}

std::vector<OutputColumn> JoinTable::match(const Batch& keys) const {
  JoinHeads reader(*this, keys.columns());
  Cells<int64_t> probe;
  Cells<int64_t> build;
  uint32_t heads[kVectorRows];
  for (int64_t begin = 0; begin < keys.rows(); begin += kVectorRows) {
    const int64_t rows = std::min(kVectorRows, keys.rows() - begin);
    reader.find(begin, rows, heads);
    for (int64_t row = 0; row < rows; ++row) {
      for (uint32_t link = heads[row]; link != kNoRow; link = has_more(link) ? next(link) : kNoRow) {
        probe.push_back(begin + row);
        build.push_back(row_of(link));
      }
    }
  }
  std::vector<OutputColumn> out;
  for (const Cells<int64_t>* numbers : {&probe, &build}) {
    out.push_back(row_numbers(numbers->size()));
    if (!numbers->empty())
      std::memcpy(out.back().values.data(), numbers->data(), static_cast<size_t>(numbers->size()) * 8);
  }
  return out;
}

OutputColumn JoinTable::contains(const Batch& keys) const {
  OutputColumn out;
  out.type = simple_type(Kind::Bool);
  out.rows = keys.rows();
  out.values = Buffer::zeroed(bitmap_bytes(keys.rows()));
  JoinHeads reader(*this, keys.columns());
  auto* bits = out.values.as<uint8_t>();
  uint32_t heads[kVectorRows];
  static_assert(kVectorRows % 8 == 0);
  for (int64_t begin = 0; begin < keys.rows(); begin += kVectorRows) {
    const int64_t rows = std::min(kVectorRows, keys.rows() - begin);
    reader.find(begin, rows, heads);
    for (int64_t row = 0; row < rows; ++row) {
      bits[(begin + row) >> 3] |= static_cast<uint8_t>((heads[row] != kNoRow) << (row & 7));
    }
  }
  return out;
}

JoinHeads::JoinHeads(const JoinTable& table, std::span<const Column> keys) : table_(table) {
  if (keys.size() != table.types_.size())
    throw EngineBug("a join table was asked for another number of keys");
  for (size_t column = 0; column < keys.size(); ++column) {
    if (!same_values(keys[column].type, table.types_[column])) {
      throw EngineBug("a join table of Arrow format '" + table.types_[column].format + "' was asked for '" +
                      keys[column].type.format + "'");
    }
  }
  if (table.lookup_ != nullptr) {
    words_ = std::make_unique<WordReader>(table.words_, keys);
  } else if (table.index_ != nullptr) {
    rows_ = std::make_unique<KeyRows>(*table.index_, pointers_to(keys));
  }
}

void JoinHeads::find(int64_t begin, int64_t rows, uint32_t* heads) {
  if (words_ != nullptr) {
    bool all = true;
    const uint64_t* words = words_->read(begin, rows, all);
    table_.lookup_->find(words, rows, heads);
    for (int64_t row = 0; !all && row < rows; ++row) {
      if (words_->keep()[row] == 0) heads[row] = kNoRow;
    }
  } else if (rows_ != nullptr) {
    rows_->find(*table_.index_, begin, rows, heads);
    static_assert(kNoEntry == kNoRow);
    for (int64_t row = 0; row < rows; ++row) {
      if (heads[row] != kNoEntry) heads[row] = table_.links_[heads[row]];
    }
  } else {
    std::fill_n(heads, rows, table_.links_[0]);
  }
}

}  // namespace bireme
