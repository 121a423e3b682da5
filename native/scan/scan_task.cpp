#include "scan/scan_task.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "arrow/errors.hpp"
#include "scan/compact.hpp"

namespace bireme::scan {

namespace {

// Dictionaries are small next to the rows that share their entries; one that is not is no cheaper to ask than
// the rows.
bool is_cheaper_by_entry(const Type& type, int64_t entries, int64_t rows) {
  return is_string(type.kind) ? entries <= rows : 4 * entries <= rows;
}

// Strings of so few entries are given as codes whatever the number of rows.
constexpr int64_t kFewEntries = 1024;

int64_t bytes_of(const OutputColumn& column) {
  return column.validity.size() + column.values.size() + column.offsets.size();
}

// One row of NULL.
struct NullRow {
  explicit NullRow(const Type& type) {
    column.type = type;
    column.rows = 1;
    column.null_count = 1;
    column.validity = &invalid;
    column.values = zeros;
    column.offsets = offsets;
  }
  uint8_t invalid = 0;
  int32_t offsets[2] = {0, 0};
  alignas(16) unsigned char zeros[16] = {};
  Column column;
};

OutputColumn copy_of(const Column& entries) {
  OutputColumn copy{.type = entries.type, .rows = entries.rows};
  const int32_t first = entries.rows > 0 ? entries.offsets[0] : 0;
  copy.offsets = Buffer((entries.rows + 1) * 4);
  auto* offsets = copy.offsets.as<int32_t>();
  offsets[0] = 0;
  for (int64_t row = 1; row <= entries.rows; ++row) offsets[row] = entries.offsets[row] - first;
  const int64_t bytes = offsets[entries.rows];
  copy.values = Buffer(bytes);
  if (bytes > 0) std::memcpy(copy.values.data(), entries.as<char>() + first, static_cast<size_t>(bytes));
  return copy;
}

// Where the `count` rows at `kept` stand among the ascending rows at `rows`, of which they are a part.
void find_places(const uint32_t* rows, const uint32_t* kept, int64_t count, uint32_t* places) {
  uint32_t place = 0;
  for (int64_t index = 0; index < count; ++index) {
    while (rows[place] != kept[index]) ++place;
    places[index] = place++;
  }
}

int64_t total_rows(const std::vector<RowRange>& ranges) {
  int64_t total = 0;
  for (const RowRange& range : ranges) total += range.count;
  return total;
}

// Takes ranges of at most `rows_max` rows from the front of `ranges`, beginning at `next`.
std::vector<RowRange> next_block(std::vector<RowRange>& ranges, size_t& next, int64_t rows_max) {
  std::vector<RowRange> block;
  int64_t room = rows_max;
  while (next < ranges.size() && room > 0) {
    RowRange& range = ranges[next];
    const int64_t taken = std::min(range.count, room);
    block.push_back({range.first, taken});
    room -= taken;
    range.first += taken;
    range.count -= taken;
    if (range.count == 0) ++next;
  }
  return block;
}

}  // namespace

ScanTask::ScanTask(const ScanPlan& plan, std::vector<ColumnInput> inputs, parquet::Decompressor* decompressor,
                   bool late, const Program* bound)
    : plan_(plan), decompressor_(decompressor), late_(late), bound_(bound), slots_(inputs.size()) {
  if (inputs.size() != plan.types().size())
    throw EngineBug("a scan was given another number of chunks than of columns");
  std::vector<double> row_bytes;
  for (size_t index = 0; index < inputs.size(); ++index) {
    slots_[index].input = std::move(inputs[index]);
    slots_[index].input.chunk.type = plan.types()[index];
    const Column* memory = slots_[index].input.memory;
    if (memory != nullptr && memory->type.kind != plan.types()[index].kind)
      throw EngineBug("a scan of Arrow format '" + plan.types()[index].format + "' was given '" +
                      memory->type.format + "'");
    // Of columns in memory nothing is stored that would have to be unpacked.
    const parquet::ChunkSpec& chunk = slots_[index].input.chunk;
    row_bytes.push_back(static_cast<double>(chunk.bytes.size()) /
                        static_cast<double>(std::max(chunk.rows, int64_t{1})));
  }
  order_ = plan.order(row_bytes, bound != nullptr);
  answers_.resize(order_.size());
}

// Runs `work` on the reader of a column and says of which column its errors speak.
template <typename Work>
auto ScanTask::reading(int column, Work work) {
  try {
    return work(reader(column));
  } catch (const parquet::Corrupt& error) {
    throw DamagedColumn(column, error.what());
  } catch (const Unsupported& error) {
    throw UnreadColumn(column, error.what());
  }
}

ScannedColumn& ScanTask::reader(int column) {
  Slot& wanted = slot(column);
  if (wanted.reader == nullptr) {
    ColumnInput& input = wanted.input;
    wanted.reader = input.memory != nullptr ? scanned_memory(*input.memory, input.first)
                                            : scanned_chunk(std::move(input.chunk), decompressor_);
  }
  return *wanted.reader;
}

bool ScanTask::is_whole(const Slot& wanted) const {
  return is_all_ && wanted.input.memory != nullptr && !wanted.values.has_value();
}

parquet::Selection ScanTask::selection() const {
  if (is_all_) return {nullptr, count_};
  return {rows_.as<uint32_t>(), count_};
}

std::vector<ScanBatch> ScanTask::run(const std::vector<RowRange>& ranges, int64_t rows_max) {
  std::vector<RowRange> left = ranges;
  std::vector<ScanBatch> batches;
  for (size_t next = 0; next < left.size();) {
    const std::vector<RowRange> block = next_block(left, next, rows_max);
    is_last_ = next == left.size();
    ScanBatch batch = run_block(block);
    if (batch.rows > 0) batches.push_back(std::move(batch));
  }
  return batches;
}

void ScanTask::start(const std::vector<RowRange>& ranges) {
  count_ = total_rows(ranges);
  is_all_ = ranges.size() == 1 && ranges[0].first == 0 && !slots_.empty() && count_ == slots_[0].input.rows();
  counts_.rows_in += count_;
  next_step_ = 0;
  if (is_all_) return;
  rows_ = Buffer(count_ * 4);
  auto* out = rows_.as<uint32_t>();
  for (const RowRange& range : ranges) {
    std::iota(out, out + range.count, static_cast<uint32_t>(range.first));
    out += range.count;
  }
}

ScanBatch ScanTask::run_block(const std::vector<RowRange>& ranges) {
  start(ranges);
  for (Slot& each : slots_) each.values.reset();
  if (!late_) {
    for (size_t column = 0; column < slots_.size(); ++column) decode(static_cast<int>(column));
  }
  while (next_step_ < order_.size() && count_ > 0) {
    const Step& step = *order_[next_step_++];
    const int64_t before = count_;
    take_step(step);
    step.record(before, count_);
    dropped_by(step) += before - count_;
  }
  return count_ > 0 ? made() : ScanBatch{};
}

int64_t& ScanTask::dropped_by(const Step& step) {
  if (step.is_bound()) return counts_.dropped_by_bound;
  return step.filter() != nullptr ? counts_.dropped_by_filters : counts_.dropped_by_conditions;
}

void ScanTask::take_step(const Step& step) {
  if (take_step_by_codes(step)) return;
  for (int column : step.columns()) decode(column);
  const std::vector<Column> columns = views();
  if (step.filter() == nullptr) {
    const Program::Result result = condition(step).run(columns, count_, false);
    if (!result.all) keep(result.selection.as<uint32_t>(), result.rows);
    return;
  }
  std::vector<Column> keys;
  for (int column : step.columns()) keys.push_back(columns[static_cast<size_t>(column)]);
  chosen_ = Buffer(count_ * 4);
  const int64_t kept = step.filter()->select(keys, count_, chosen_.as<uint32_t>());
  if (kept < count_) keep(chosen_.as<uint32_t>(), kept);
}

// Shrinks the rows by asking the step about the entries of a dictionary. False where there is none, or it is
// not cheaper.
bool ScanTask::take_step_by_codes(const Step& step) {
  if (step.columns().size() != 1 || step.can_raise()) return false;
  const int column = step.columns()[0];
  if (slot(column).values.has_value()) return false;
  const bool is_cheap = reading(column, [&](ScannedColumn& chunk) {
    return chunk.is_dictionary() && is_cheaper_by_entry(chunk.type(), chunk.dictionary().rows, count_);
  });
  step.record_by_codes(is_cheap);
  if (!is_cheap) return false;
  const Answers& asked = answers(step, column);
  if (!asked.keep_any) {
    keep(nullptr, 0);
    return true;
  }
  chosen_ = Buffer(count_ * 4);
  auto* chosen = chosen_.as<uint32_t>();
  const int64_t kept = reading(column, [&](ScannedColumn& chunk) {
    return chunk.select_codes(selection(), asked.keep, asked.keep_null, chosen);
  });
  if (kept == count_) return true;
  const bool any_decoded =
      std::any_of(slots_.begin(), slots_.end(), [](const Slot& each) { return each.values.has_value(); });
  if (any_decoded) {
    // Decoded columns shrink by places among the rows that are left, not by rows.
    Buffer places(kept * 4);
    if (is_all_) {
      std::memcpy(places.data(), chosen, static_cast<size_t>(kept) * 4);
    } else {
      find_places(rows_.as<uint32_t>(), chosen, kept, places.as<uint32_t>());
    }
    keep(places.as<uint32_t>(), kept);
    return true;
  }
  rows_.swap(chosen_);
  count_ = kept;
  is_all_ = false;
  return true;
}

const ScanTask::Answers& ScanTask::answers(const Step& step, int column) {
  Answers& asked = answers_[next_step_ - 1];
  if (asked.known) return asked;
  const Column entries = reading(column, [](ScannedColumn& chunk) { return chunk.dictionary(); });
  asked.keep.assign(static_cast<size_t>(entries.rows), 0);
  if (step.filter() != nullptr) {
    Buffer kept(entries.rows * 4);
    const int64_t count = step.filter()->select(std::span(&entries, 1), entries.rows, kept.as<uint32_t>());
    for (int64_t index = 0; index < count; ++index) asked.keep[kept.as<uint32_t>()[index]] = 1;
  } else {
    std::vector<Column> columns(slots_.size());
    columns[static_cast<size_t>(column)] = entries;
    const Program::Result result = condition(step).run(columns, entries.rows, false);
    if (result.all) std::fill(asked.keep.begin(), asked.keep.end(), uint8_t{1});
    const int64_t count = result.all ? 0 : result.rows;
    for (int64_t index = 0; index < count; ++index) asked.keep[result.selection.as<uint32_t>()[index]] = 1;
    const NullRow null(entries.type);
    columns[static_cast<size_t>(column)] = null.column;
    asked.keep_null = condition(step).run(columns, 1, false).rows == 1;
  }
  asked.keep_any = asked.keep_null || std::find(asked.keep.begin(), asked.keep.end(), 1) != asked.keep.end();
  asked.known = true;
  return asked;
}

void ScanTask::decode(int column) {
  Slot& wanted = slot(column);
  if (wanted.values.has_value() || is_whole(wanted)) return;
  reading(column, [&](ScannedColumn& chunk) {
    wanted.is_codes = chunk.type().kind == Kind::String && chunk.is_dictionary() &&
                      chunk.dictionary().rows <= std::max(count_, kFewEntries);
    wanted.values = wanted.is_codes ? chunk.read_codes(selection()) : chunk.read(selection());
    if (is_last_) chunk.forget_pages();
    if (is_last_ && !wanted.is_codes) chunk.forget_dictionary();
  });
  measure();
}

std::vector<Column> ScanTask::views() {
  std::vector<Column> columns(slots_.size());
  for (size_t index = 0; index < slots_.size(); ++index) {
    const Slot& each = slots_[index];
    if (is_whole(each)) columns[index] = *each.input.memory;
    if (!each.values.has_value()) continue;
    columns[index] = view_of(*each.values);
    if (!each.is_codes) continue;
    const Column& entries = each.reader->dictionary();
    columns[index].type = entries.type;
    columns[index].dictionary = &entries;
  }
  return columns;
}

// Keeps the rows at `count` places among those that are left.
void ScanTask::keep(const uint32_t* places, int64_t count) {
  const auto is_needed = [this](int column) {
    if (plan_.is_output(column)) return true;
    return std::any_of(
        order_.begin() + static_cast<int64_t>(next_step_), order_.end(), [&](const Step* step) {
          return std::find(step->columns().begin(), step->columns().end(), column) != step->columns().end();
        });
  };
  for (size_t index = 0; index < slots_.size(); ++index) {
    std::optional<OutputColumn>& values = slots_[index].values;
    if (!values.has_value()) continue;
    if (count > 0 && is_needed(static_cast<int>(index))) {
      values = compact(std::move(*values), places, count);
    } else {
      values.reset();
    }
  }
  if (is_all_) {
    rows_ = Buffer(count * 4);
    if (count > 0) std::memcpy(rows_.data(), places, static_cast<size_t>(count) * 4);
  } else {
    auto* rows = rows_.as<uint32_t>();
    for (int64_t index = 0; index < count; ++index) rows[index] = rows[places[index]];
  }
  is_all_ = false;
  count_ = count;
}

ScanBatch ScanTask::made() {
  for (size_t column = 0; column < slots_.size(); ++column) {
    if (plan_.is_output(static_cast<int>(column))) decode(static_cast<int>(column));
  }
  Program::Result computed;
  if (std::find(plan_.passed().begin(), plan_.passed().end(), -1) != plan_.passed().end()) {
    computed = plan_.program().run(views(), count_, true);
  }
  ScanBatch batch;
  batch.rows = count_;
  auto next = computed.columns.begin();
  for (int column : plan_.passed()) {
    if (column < 0) {
      batch.columns.push_back(std::move(*next++));
      continue;
    }
    Slot& passed = slot(column);
    if (is_whole(passed)) {
      batch.as_they_are.emplace_back(static_cast<int>(batch.columns.size()), column);
      batch.columns.push_back({.type = simple_type(Kind::Null), .rows = count_, .null_count = count_});
      continue;
    }
    if (passed.is_codes) {
      if (passed.entries == nullptr) {
        passed.entries = std::make_shared<const OutputColumn>(copy_of(passed.reader->dictionary()));
      }
      passed.values->dictionary = passed.entries;
    }
    batch.columns.push_back(std::move(*passed.values));
  }
  return batch;
}

void ScanTask::measure() {
  int64_t held = 0;
  for (const Slot& each : slots_) held += each.values.has_value() ? bytes_of(*each.values) : 0;
  counts_.bytes_held_max = std::max(counts_.bytes_held_max, held);
}

ScanCounts ScanTask::counts() const {
  ScanCounts counts = counts_;
  for (const Slot& each : slots_) {
    if (each.reader == nullptr) continue;
    counts.pages_skipped += each.reader->pages_skipped();
    counts.bytes_decompressed += each.reader->bytes_decompressed();
  }
  return counts;
}

}  // namespace bireme::scan
