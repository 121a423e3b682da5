#include "kernels/join_probe.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "arrow/errors.hpp"
#include "kernels/gather.hpp"
#include "kernels/join_judge.hpp"

namespace bireme {

namespace {

// Rows of a piece: what a batch has at most, so that what comes out suits what follows.
constexpr int64_t kPieceRows = 131'072;
// Pairs that a residual judges at once; its columns stay in the second-level cache.
constexpr int64_t kJudgedPairs = 16'384;

[[noreturn]] void fail_many() {
  throw CardinalityFault(
      "a scalar subquery gave more than one row; add LIMIT 1 or an aggregate such as max()");
}

bool counts_up(const uint32_t* positions, int64_t rows) {
  uint32_t wrong = 0;
  for (int64_t row = 0; row < rows; ++row) wrong |= positions[row] ^ static_cast<uint32_t>(row);
  return wrong == 0;
}

Cells<uint32_t> positions_where(const std::vector<uint8_t>& flags, uint8_t wanted) {
  Cells<uint32_t> positions;
  positions.resize(static_cast<int64_t>(flags.size()));
  int64_t count = 0;
  for (size_t row = 0; row < flags.size(); ++row) {
    positions[count] = static_cast<uint32_t>(row);
    count += flags[row] == wanted ? 1 : 0;
  }
  positions.resize(count);
  return positions;
}

// Marks the rows of matches that no residual judges. Chains of one key are marked together, so that the first
// row tells for all.
void mark_all(ChainMatches& matches, const uint32_t* rests, int64_t rows, uint8_t* matched) {
  for (int64_t row = 0; row < rows; ++row) {
    if (!matches.has(rests[row]) || is_marked(matched, matches.row(rests[row]))) continue;
    for (uint32_t rest = rests[row]; matches.has(rest); matches.step(rest)) mark(matched, matches.row(rest));
  }
}

void mark_all(RangeMatches& matches, const RangeSpan* rests, int64_t rows, uint8_t* matched) {
  for (int64_t row = 0; row < rows; ++row) {
    for (RangeSpan rest = rests[row]; matches.has(rest); matches.step(rest)) {
      if (!is_marked(matched, matches.row(rest))) mark(matched, matches.row(rest));
    }
  }
}

OutputColumn bools(const std::vector<uint8_t>& values, const std::vector<uint8_t>* unknown) {
  const auto rows = static_cast<int64_t>(values.size());
  OutputColumn column{.type = simple_type(Kind::Bool), .rows = rows};
  column.values = Buffer::zeroed(bitmap_bytes(rows));
  auto* bits = column.values.as<uint8_t>();
  for (int64_t row = 0; row < rows; ++row)
    bits[row >> 3] |= static_cast<uint8_t>(values[static_cast<size_t>(row)] << (row & 7));
  if (unknown == nullptr) return column;
  column.validity = Buffer::zeroed(bitmap_bytes(rows));
  auto* valid = column.validity.as<uint8_t>();
  for (int64_t row = 0; row < rows; ++row) {
    const uint8_t known = (*unknown)[static_cast<size_t>(row)] ^ 1;
    valid[row >> 3] |= static_cast<uint8_t>(known << (row & 7));
    column.null_count += known == 0 ? 1 : 0;
  }
  return column;
}

}  // namespace

ProbeRun::ProbeRun(const ProbePlan& plan, Batch stream, Batch keys)
    : plan_(plan), stream_(std::move(stream)), keys_(std::move(keys)) {
  if (keys_.rows() != stream_.rows()) throw EngineBug("a probe got another number of keys than of rows");
  with_matches([this]<typename Matches>(Matches matches) {
    cursor_ = std::make_unique<MatchCursor<Matches>>(std::move(matches), stream_.rows());
  });
}

template <typename Use>
void ProbeRun::with_matches(Use use) const {
  if (plan_.bounds.empty()) {
    use(ChainMatches(*plan_.table, keys_.columns()));
  } else {
    use(RangeMatches(*plan_.table, plan_.bounds, keys_.columns()));
  }
}

std::optional<JoinPiece> ProbeRun::next() {
  if (done_) return std::nullopt;
  switch (plan_.kind) {
    case ProbeKind::Inner:
    case ProbeKind::Left:
    case ProbeKind::Single:
      return next_pairs();
    case ProbeKind::Semi:
    case ProbeKind::Anti:
      done_ = true;
      return chosen_rows();
    case ProbeKind::Mark:
      done_ = true;
      return marked_rows();
  }
  throw EngineBug("a probe of no kind");
}

// ----------------------------------------------------------------------------------------------------- pairs

std::optional<JoinPiece> ProbeRun::next_pairs() {
  pairs_ = 0;
  if (plan_.residual == nullptr) {
    fill_pairs();
  } else {
    fill_judged();
  }
  done_ = cursor_->at_end();
  if (plan_.matched != nullptr) {
    for (int64_t pair = 0; pair < pairs_; ++pair) {
      if (found_[pair] != kMissingRow) mark(plan_.matched, found_[pair]);
    }
  }
  return gathered(pairs_);
}

void ProbeRun::fill_pairs() {
  const bool missing = plan_.kind != ProbeKind::Inner;
  const int64_t capacity =
      plan_.table->is_unique() ? std::min(kPieceRows, std::max(stream_.rows(), kVectorRows)) : kPieceRows;
  positions_.resize(capacity);
  found_.resize(capacity);
  pairs_ = cursor_->fill(positions_.data(), found_.data(), capacity, missing, nullptr);
  if (plan_.kind != ProbeKind::Single) return;
  for (int64_t pair = 0; pair < pairs_; ++pair) {
    // Rows come in order, so equal neighbours are two matches of one row; a row may begin in one piece and go
    // on in the next.
    if (open_row_ == int64_t{positions_[pair]} + 1) fail_many();
    open_row_ = int64_t{positions_[pair]} + 1;
  }
}

void ProbeRun::fill_judged() {
  positions_.clear();
  found_.clear();
  block_positions_.resize(kJudgedPairs);
  block_found_.resize(kJudgedPairs);
  while (pairs_ < kPieceRows && !cursor_->at_end()) {
    int64_t pairs = cursor_->fill(block_positions_.data(), block_found_.data(), kJudgedPairs, false, nullptr);
    pairs = judge(block_positions_.data(), block_found_.data(), pairs);
    positions_.reserve(pairs_ + pairs + stream_.rows());
    found_.reserve(pairs_ + pairs + stream_.rows());
    const bool padded = plan_.kind != ProbeKind::Inner;
    const auto close_rows = [&](int64_t end) {
      for (; padded && open_row_ < end; ++open_row_, open_matched_ = false) {
        if (!open_matched_) give(static_cast<uint32_t>(open_row_), kMissingRow);
      }
    };
    for (int64_t pair = 0; pair < pairs; ++pair) {
      close_rows(block_positions_[pair]);
      if (plan_.kind == ProbeKind::Single && open_matched_) fail_many();
      give(block_positions_[pair], block_found_[pair]);
      open_matched_ = true;
    }
    close_rows(cursor_->rows_done());
  }
}

void ProbeRun::give(uint32_t position, uint32_t row) {
  positions_.push_back(position);
  found_.push_back(row);
  ++pairs_;
}

// Keeps the pairs for which the residual is TRUE, and returns how many.
int64_t ProbeRun::judge(uint32_t* positions, uint32_t* found, int64_t pairs) {
  return keep_true(*plan_.residual, plan_.stream_columns, stream_, plan_.table->payload(), positions, found,
                   pairs);
}

JoinPiece ProbeRun::gathered(int64_t rows) {
  JoinPiece piece;
  piece.rows = rows;
  piece.all = rows == stream_.rows() && counts_up(positions_.data(), rows);
  if (!piece.all) gather_left(piece, positions_.data(), rows);
  const Batch& build = plan_.table->payload();
  for (int column : plan_.right_output) {
    piece.right.push_back(gather(build[column], found_.data(), rows, plan_.kind != ProbeKind::Inner));
  }
  return piece;
}

void ProbeRun::gather_left(JoinPiece& piece, const uint32_t* positions, int64_t rows) const {
  for (int column : plan_.left_output) piece.left.push_back(gather(stream_[column], positions, rows, false));
}

// ------------------------------------------------------------------------------------------------ rows, once

// Whether each row has a pair: 1 or 0.
std::vector<uint8_t> ProbeRun::found_rows() {
  std::vector<uint8_t> found(static_cast<size_t>(stream_.rows()));
  with_matches([&]<typename Matches>(Matches matches) {
    if (plan_.residual != nullptr) return judge_found(matches, found);
    typename Matches::Rest rests[kVectorRows];
    for (int64_t begin = 0; begin < stream_.rows(); begin += kVectorRows) {
      const int64_t rows = std::min(kVectorRows, stream_.rows() - begin);
      matches.find(begin, rows, rests);
      uint8_t* out = found.data() + begin;
      for (int64_t row = 0; row < rows; ++row) out[row] = matches.has(rests[row]) ? 1 : 0;
    }
  });
  return found;
}

// Judges a few pairs of each row that is still open, then more of those that are left: a row whose first pair
// is good costs one.
template <typename Matches>
void ProbeRun::judge_found(Matches& matches, std::vector<uint8_t>& found) {
  struct Open {
    uint32_t position;
    typename Matches::Rest rest;
  };
  std::vector<Open> open;
  typename Matches::Rest rests[kVectorRows];
  for (int64_t begin = 0; begin < stream_.rows(); begin += kVectorRows) {
    const int64_t rows = std::min(kVectorRows, stream_.rows() - begin);
    matches.find(begin, rows, rests);
    for (int64_t row = 0; row < rows; ++row) {
      if (matches.has(rests[row])) open.push_back({static_cast<uint32_t>(begin + row), rests[row]});
    }
  }
  block_positions_.resize(kJudgedPairs);
  block_found_.resize(kJudgedPairs);
  for (int64_t width = 1; !open.empty(); width = std::min(2 * width, kJudgedPairs)) {
    std::vector<Open> left;
    for (size_t next = 0; next < open.size();) {
      const size_t first = next;
      int64_t pairs = 0;
      for (; next < open.size() && pairs + width <= kJudgedPairs; ++next) {
        Open& row = open[next];
        for (int64_t taken = 0; taken < width && matches.has(row.rest); ++taken) {
          block_positions_[pairs] = row.position;
          block_found_[pairs++] = matches.row(row.rest);
          matches.step(row.rest);
        }
      }
      pairs = judge(block_positions_.data(), block_found_.data(), pairs);
      for (int64_t pair = 0; pair < pairs; ++pair) found[block_positions_[pair]] = 1;
      for (size_t row = first; row < next; ++row) {
        if (matches.has(open[row].rest) && found[open[row].position] == 0) left.push_back(open[row]);
      }
    }
    open.swap(left);
  }
}

// Rows without a pair that IN cannot call FALSE: their key is NULL, or some build row's is.
std::vector<uint8_t> ProbeRun::unknown_rows(const std::vector<uint8_t>& found) const {
  std::vector<uint8_t> unknown(found.size(), 0);
  if (plan_.table->rows() == 0) return unknown;
  const Column& key = keys_[0];
  const bool everywhere = plan_.table->has_null_key();
  for (int64_t row = 0; row < key.rows; ++row) {
    bool null = key.type.kind == Kind::Null || !key.is_valid(row);
    if (!null && key.is_dictionary()) null = !key.dictionary->is_valid(key.codes()[row]);
    const auto at = static_cast<size_t>(row);
    unknown[at] = found[at] == 0 && (everywhere || null) ? 1 : 0;
  }
  return unknown;
}

JoinPiece ProbeRun::chosen_rows() {
  std::vector<uint8_t> found = found_rows();
  if (plan_.null_aware) {
    // As good as found: NOT IN is not TRUE for it.
    const std::vector<uint8_t> unknown = unknown_rows(found);
    for (size_t row = 0; row < found.size(); ++row) found[row] |= unknown[row];
  }
  const Cells<uint32_t> positions = positions_where(found, plan_.kind == ProbeKind::Semi ? 1 : 0);
  JoinPiece piece;
  piece.rows = positions.size();
  piece.all = piece.rows == stream_.rows();
  if (!piece.all) gather_left(piece, positions.data(), piece.rows);
  return piece;
}

JoinPiece ProbeRun::marked_rows() {
  JoinPiece piece;
  piece.rows = stream_.rows();
  piece.all = true;
  if (plan_.right_output.empty()) return piece;
  const std::vector<uint8_t> found = found_rows();
  if (plan_.null_aware) {
    const std::vector<uint8_t> unknown = unknown_rows(found);
    piece.right.push_back(bools(found, &unknown));
  } else {
    piece.right.push_back(bools(found, nullptr));
  }
  return piece;
}

// ----------------------------------------------------------------------------------------------------- marks

void ProbeRun::mark_matches() {
  if (plan_.residual == nullptr) {
    return with_matches([&]<typename Matches>(Matches matches) {
      typename Matches::Rest rests[kVectorRows];
      for (int64_t begin = 0; begin < stream_.rows(); begin += kVectorRows) {
        const int64_t rows = std::min(kVectorRows, stream_.rows() - begin);
        matches.find(begin, rows, rests);
        mark_all(matches, rests, rows, plan_.matched);
      }
    });
  }
  block_positions_.resize(kJudgedPairs);
  block_found_.resize(kJudgedPairs);
  while (!cursor_->at_end()) {
    int64_t pairs =
        cursor_->fill(block_positions_.data(), block_found_.data(), kJudgedPairs, false, plan_.matched);
    pairs = judge(block_positions_.data(), block_found_.data(), pairs);
    for (int64_t pair = 0; pair < pairs; ++pair) mark(plan_.matched, block_found_[pair]);
  }
}

}  // namespace bireme
