#include "kernels/join_build.hpp"

#include <algorithm>
#include <utility>

#include "arrow/errors.hpp"

namespace bireme {

namespace {

// A unit of copying takes some milliseconds at most.
constexpr int64_t kCopyRows = 262'144;
// Fewer rows are built by one thread.
constexpr int64_t kRowsPerThread = 32'768;

bool have_words(std::span<const JoinBuild::Part> parts) {
  return KeyWords::possible(parts[0].keys);
}

// The words of all parts, if their keys fit into words.
bool make_source(std::span<const JoinBuild::Part> parts, int null_equal_count, WordSource& source) {
  std::vector<WordBounds> bounds = parts[0].facts.bounds;
  for (const JoinBuild::Part& part : parts) {
    for (size_t column = 0; column < bounds.size(); ++column) {
      bounds[column].low = std::min(bounds[column].low, part.facts.bounds[column].low);
      bounds[column].high = std::max(bounds[column].high, part.facts.bounds[column].high);
    }
  }
  if (!source.words.fit(parts[0].keys, null_equal_count, bounds)) return false;
  const WordRange range = source.words.range();
  source.ascending = source.words.is_plain();
  int64_t last = 0;
  for (const JoinBuild::Part& part : parts) {
    source.rows += part.rows;
    if (part.facts.valid == 0) {
      source.ascending &= part.rows == 0;
      continue;
    }
    WordSource::Chunk chunk{part.keys, part.first_row, part.rows, part.facts.valid, 0, range.reach};
    if (source.words.is_plain()) {
      chunk.low = static_cast<uint64_t>(part.facts.bounds[0].low) - range.low;
      chunk.high = static_cast<uint64_t>(part.facts.bounds[0].high) - range.low;
    }
    source.ascending &= part.facts.ascending && (source.chunks.empty() || part.facts.bounds[0].low > last);
    if (!part.facts.bounds.empty()) last = part.facts.bounds[0].high;
    source.valid += part.facts.valid;
    source.chunks.push_back(chunk);
  }
  return true;
}

}  // namespace

void JoinBuild::build_at_once(JoinTable& table, std::span<const Part> parts) {
  int64_t valid = 0;
  for (const Part& part : parts) valid += part.facts.valid;
  table.has_null_key_ = valid < table.rows();
  if (table.types_.empty()) return table.chain_everything();
  WordSource source;
  if (have_words(parts) && make_source(parts, table.null_equal_count_, source)) {
    table.words_ = source.words;
    table.lookup_ = make_lookup(source, 1);
    table.lookup_->build(source, table.chains_, 0, 1);
    table.lookup_->finish(table.chains_);
    return;
  }
  std::vector<std::span<const Column>> chunks;
  for (const Part& part : parts) chunks.push_back(part.keys);
  table.build_index(chunks);
}

void JoinBuild::add(int64_t sequence, std::vector<Batch> keys, std::vector<Batch> columns) {
  if (keys.size() != columns.size())
    throw EngineBug("a join build got another number of batches of keys than of rows");
  std::vector<Chunk> chunks;
  int64_t rows = 0;
  for (size_t index = 0; index < keys.size(); ++index) {
    if (keys[index].rows() != columns[index].rows())
      throw EngineBug("a join build got another number of keys than of rows");
    Chunk chunk{sequence, std::move(keys[index]), std::move(columns[index]), {}};
    rows += chunk.columns.rows();
    chunk.facts = facts_of(chunk.keys.columns(), chunk.columns.rows(), null_equal_count_);
    chunks.push_back(std::move(chunk));
  }
  const std::lock_guard guard(lock_);
  if (chunks_.size() + chunks.size() > chunks_.capacity())
    chunks_.reserve(2 * (chunks_.size() + chunks.size()));
  for (Chunk& chunk : chunks) chunks_.push_back(std::move(chunk));
  rows_ += rows;
}

int JoinBuild::start(int threads) {
  return threads_ = static_cast<int>(std::clamp<int64_t>(rows_ / kRowsPerThread, 1, threads));
}

void JoinBuild::prepare() {
  if (chunks_.empty()) throw EngineBug("a join table is built of nothing");
  std::stable_sort(chunks_.begin(), chunks_.end(),
                   [](const Chunk& left, const Chunk& right) { return left.sequence < right.sequence; });
  std::vector<Part> parts;
  int64_t first = 0;
  int64_t valid = 0;
  for (const Chunk& chunk : chunks_) {
    parts.push_back({chunk.keys.columns(), first, chunk.columns.rows(), chunk.facts});
    first += chunk.columns.rows();
    valid += chunk.facts.valid;
  }
  std::vector<Type> types;
  for (const Column& column : chunks_[0].keys.columns()) types.push_back(column.type);
  auto table = std::make_unique<JoinTable>(types, null_equal_count_, rows_);
  table->has_null_key_ = valid < rows_;
  waiting_.clear();
  source_ = {};
  if (!types.empty() && have_words(parts) && make_source(parts, null_equal_count_, source_)) {
    table->words_ = source_.words;
    table->lookup_ = make_lookup(source_, threads_);
    for (size_t part = 0; part < static_cast<size_t>(threads_); ++part) {
      waiting_.push_back({Unit::Kind::Lookup, part, part + 1});
    }
  } else {
    waiting_.push_back({Unit::Kind::Index, 0, 0});
  }
  table_ = std::move(table);
  plan_copies();
  // Taken from the end: look-ups, which take longer, come first.
  std::reverse(waiting_.begin(), waiting_.end());
  unfinished_ = waiting_.size();
  prepared_ = true;
}

void JoinBuild::plan_copies() {
  std::vector<const Batch*> columns;
  for (const Chunk& chunk : chunks_) columns.push_back(&chunk.columns);
  if (columns.size() == 1 || !JoinedChunks::possible(columns)) return;
  payload_ = std::make_unique<JoinedChunks>(columns);
  size_t first = 0;
  int64_t rows = 0;
  for (size_t chunk = 0; chunk < chunks_.size(); ++chunk) {
    rows += chunks_[chunk].columns.rows();
    if (rows < kCopyRows && chunk + 1 < chunks_.size()) continue;
    waiting_.push_back({Unit::Kind::Copy, first, chunk + 1});
    first = chunk + 1;
    rows = 0;
  }
}

bool JoinBuild::work() {
  for (;;) {
    Unit unit{};
    {
      const std::lock_guard guard(lock_);
      if (!prepared_) prepare();
      if (waiting_.empty()) return false;
      unit = waiting_.back();
      waiting_.pop_back();
    }
    try {
      run(unit);
    } catch (...) {
      const std::lock_guard guard(lock_);
      waiting_.push_back(unit);
      throw;
    }
    {
      const std::lock_guard guard(lock_);
      if (unfinished_ > 1) {
        --unfinished_;
        continue;
      }
    }
    try {
      finish();
    } catch (...) {
      const std::lock_guard guard(lock_);
      waiting_.push_back(unit);
      throw;
    }
    return true;
  }
}

void JoinBuild::run(const Unit& unit) {
  switch (unit.kind) {
    case Unit::Kind::Lookup:
      table_->lookup_->build(source_, table_->chains_, static_cast<int>(unit.first), threads_);
      return;
    case Unit::Kind::Index: {
      if (table_->types_.empty()) return table_->chain_everything();
      std::vector<std::span<const Column>> keys;
      for (const Chunk& chunk : chunks_) keys.push_back(chunk.keys.columns());
      table_->build_index(keys);
      return;
    }
    case Unit::Kind::Copy:
      for (size_t chunk = unit.first; chunk < unit.last; ++chunk) payload_->copy(chunk);
      return;
  }
}

void JoinBuild::finish() {
  if (table_->lookup_ != nullptr) table_->lookup_->finish(table_->chains_);
}

}  // namespace bireme
