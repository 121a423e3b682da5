#include "kernels/sort_rows.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "arrow/errors.hpp"

namespace bireme {

namespace {

using Entry = SortEntry;

// The pieces, joined into one code a row as far as they fit.
struct Codes {
  Cells<uint64_t> joined;
  int bits = 0;
  size_t rest = 0;  // the first piece that the joined code does not decide wholly

  bool decides(const std::vector<SortPiece>& pieces) const { return rest == pieces.size(); }
};

Codes join_pieces(std::vector<SortPiece>& pieces, int64_t rows) {
  Codes codes;
  if (pieces.size() == 1 && pieces[0].text == nullptr) {
    std::swap(codes.joined, pieces[0].codes);
    codes.bits = pieces[0].bits;
    codes.rest = 1;
    return codes;
  }
  codes.joined.resize(rows, 0);
  uint64_t* joined = codes.joined.data();
  for (const SortPiece& piece : pieces) {
    const int taken = std::min(piece.bits, 64 - codes.bits);
    const int dropped = piece.bits - taken;
    if (taken == 64) {
      for (int64_t row = 0; row < rows; ++row) joined[row] = piece.codes[row];
    } else if (taken > 0) {
      for (int64_t row = 0; row < rows; ++row)
        joined[row] = joined[row] << taken | piece.codes[row] >> dropped;
    }
    codes.bits += taken;
    if (dropped > 0 || piece.text != nullptr) break;
    ++codes.rest;
  }
  return codes;
}

// Gives up the codes of pieces that a joined code stands for.
void release(std::vector<SortPiece>& pieces) {
  for (SortPiece& piece : pieces) piece.codes = {};
}

// Whether the left row comes before the right one by the pieces from `first` on, then by position.
class Before {
 public:
  Before(const std::vector<SortPiece>& pieces, size_t first) : pieces_(pieces), first_(first) {}

  bool operator()(const Entry& left, const Entry& right) const {
    if (left.code != right.code) return left.code < right.code;
    for (size_t index = first_; index < pieces_.size(); ++index) {
      const SortPiece& piece = pieces_[index];
      const uint64_t left_code = piece.codes[left.row];
      const uint64_t right_code = piece.codes[right.row];
      if (left_code != right_code) return left_code < right_code;
      if (piece.text == nullptr) continue;
      // NULL or not has been decided by a piece before this one, so one NULL here means two.
      if (!piece.text->is_valid(left.row)) continue;
      const int order = piece.text->string_at(left.row).compare(piece.text->string_at(right.row));
      if (order != 0) return (order < 0) != piece.descending;
    }
    return left.row < right.row;
  }

 private:
  const std::vector<SortPiece>& pieces_;
  size_t first_;
};

// Sorts by the lowest `bits` of the code, byte by byte from the lowest; stable.
void radix_sort(Cells<Entry>& entries, int bits) {
  const int64_t rows = entries.size();
  Cells<Entry> other;
  other.resize(rows);
  const int passes = (bits + 7) / 8;
  std::vector<std::array<uint32_t, 256>> counts(static_cast<size_t>(passes));
  for (int64_t row = 0; row < rows; ++row) {
    const uint64_t code = entries[row].code;
    for (int pass = 0; pass < passes; ++pass) ++counts[static_cast<size_t>(pass)][(code >> (8 * pass)) & 255];
  }
  for (int pass = 0; pass < passes; ++pass) {
    auto& starts = counts[static_cast<size_t>(pass)];
    if (starts[(entries[0].code >> (8 * pass)) & 255] == rows) continue;
    uint32_t next = 0;
    for (uint32_t& start : starts) {
      const uint32_t count = start;
      start = next;
      next += count;
    }
    const Entry* from = entries.data();
    Entry* to = other.data();
    for (int64_t row = 0; row < rows; ++row) to[starts[(from[row].code >> (8 * pass)) & 255]++] = from[row];
    std::swap(entries, other);
  }
}

void sort_entries(Cells<Entry>& entries, const Codes& codes, const std::vector<SortPiece>& pieces) {
  constexpr int64_t kRadixRowsMin = 512;
  const int64_t rows = entries.size();
  Entry* first = entries.data();
  if (!std::is_sorted(first, first + rows)) {
    if (rows < kRadixRowsMin) {
      std::sort(first, first + rows);
    } else {
      radix_sort(entries, codes.bits);
    }
  }
  if (codes.decides(pieces)) return;
  first = entries.data();
  const Before before(pieces, codes.rest);
  for (int64_t begin = 0; begin < rows;) {
    int64_t end = begin + 1;
    while (end < rows && first[end].code == first[begin].code) ++end;
    if (end - begin > 1) std::sort(first + begin, first + end, before);
    begin = end;
  }
}

// Only rows that can be among the first `limit`: a buffer of candidates, cut back to the best whenever it is
// full.
Cells<Entry> first_entries(const Codes& codes, const std::vector<SortPiece>& pieces, int64_t limit) {
  const int64_t rows = codes.joined.size();
  const bool decides = codes.decides(pieces);
  Cells<Entry> kept;
  int64_t full = std::max<int64_t>(2 * limit, 1024);
  uint64_t bound = std::numeric_limits<uint64_t>::max();
  bool bounded = false;
  for (int64_t row = 0; row < rows; ++row) {
    const uint64_t code = codes.joined[row];
    if (bounded && (code > bound || (decides && code == bound))) continue;
    kept.push_back({code, static_cast<uint32_t>(row)});
    if (kept.size() < full) continue;
    Entry* first = kept.data();
    std::nth_element(first, first + limit - 1, first + kept.size());
    bound = first[limit - 1].code;
    bounded = true;
    Entry* end = first + limit;
    if (!decides) {
      end = std::partition(end, first + kept.size(),
                           [bound](const Entry& entry) { return entry.code == bound; });
    }
    kept.resize(end - first);
    // Where codes decide little, many stay; the next cut must still remove a share of what it looks at.
    full = std::max(full, 2 * kept.size());
  }
  // In the order of rows, which a radix sort keeps among equal codes.
  std::sort(kept.data(), kept.data() + kept.size(),
            [](const Entry& left, const Entry& right) { return left.row < right.row; });
  return kept;
}

Cells<Entry> all_entries(const Codes& codes) {
  Cells<Entry> entries;
  const int64_t rows = codes.joined.size();
  entries.resize(rows);
  for (int64_t row = 0; row < rows; ++row) entries[row] = {codes.joined[row], static_cast<uint32_t>(row)};
  return entries;
}

// Puts the rows, of which there are some, in order by the pieces, unless they are: the first `wanted`.
void sort_by_pieces(SortedRows& sorted, int64_t rows, int64_t wanted, bool are_in_order) {
  Codes codes = join_pieces(sorted.pieces, rows);
  sorted.is_decided = codes.decides(sorted.pieces);
  if (sorted.is_decided) release(sorted.pieces);
  sorted.entries = wanted < rows ? first_entries(codes, sorted.pieces, wanted) : all_entries(codes);
  codes.joined = {};
  if (!are_in_order) sort_entries(sorted.entries, codes, sorted.pieces);
}

void check(const Batch& batch, const std::vector<SortKey>& keys) {
  if (batch.rows() > std::numeric_limits<uint32_t>::max())
    throw Unsupported("a batch of more than 2^32 rows cannot be sorted");
  if (keys.size() != batch.columns().size())
    throw EngineBug("a sort has another number of columns than of directions");
}

}  // namespace

SortedRows sorted_rows(const Batch& batch, const std::vector<SortKey>& keys, size_t split,
                       bool are_in_order) {
  check(batch, keys);
  SortedRows sorted;
  for (size_t index = 0; index < keys.size(); ++index) {
    if (index == split) sorted.split_pieces = sorted.pieces.size();
    append_sort_pieces(batch.columns()[index], keys[index], false, sorted.pieces);
  }
  if (split >= keys.size()) sorted.split_pieces = sorted.pieces.size();
  for (size_t index = sorted.split_pieces; index < sorted.pieces.size(); ++index)
    sorted.split_bits += sorted.pieces[index].bits;
  if (batch.rows() > 0) sort_by_pieces(sorted, batch.rows(), batch.rows(), are_in_order);
  return sorted;
}

OutputColumn sort_rows(const Batch& batch, const std::vector<SortKey>& keys, int64_t limit) {
  check(batch, keys);
  const int64_t rows = batch.rows();
  const int64_t wanted = limit < 0 ? rows : std::min(limit, rows);
  const bool few = wanted <= rows / 4;
  SortedRows sorted;
  for (size_t index = 0; index < keys.size(); ++index) {
    append_sort_pieces(batch.columns()[index], keys[index], few && keys.size() == 1, sorted.pieces);
  }
  OutputColumn out;
  out.type = simple_type(Kind::Int64);
  out.rows = wanted;
  out.values = Buffer(wanted * 8);
  if (wanted == 0) return out;
  sort_by_pieces(sorted, rows, few ? wanted : rows, false);
  int64_t* positions = out.values.as<int64_t>();
  for (int64_t row = 0; row < wanted; ++row) positions[row] = sorted.entries[row].row;
  return out;
}

}  // namespace bireme
