// Probes of every kind, with and without a residual, against nested loops; pieces stay bounded whatever
// matches.
#include "kernels/join_probe.hpp"

#include <optional>
#include <random>
#include <vector>

#include "arrow/errors.hpp"
#include "kernels/expression/program.hpp"
#include "tests/check.hpp"
#include "tests/table_batches.hpp"

using namespace bireme;
using namespace bireme::test;

namespace {

using Value = std::optional<int64_t>;

struct Side {
  Longs keys;
  Longs values;
};

Side draw(std::mt19937_64& random, size_t rows, uint64_t spread) {
  Side side;
  for (size_t row = 0; row < rows; ++row) {
    side.keys.push_back(random() % 10 == 0 ? std::nullopt : Value(static_cast<int64_t>(random() % spread)));
    side.values.push_back(random() % 10 == 0 ? std::nullopt : Value(static_cast<int64_t>(random() % 100)));
  }
  return side;
}

Batch batch_of_side(const Side& side) {
  return batch(longs(side.keys), longs(side.values));
}

// The stream's value is below the build's.
Program below() {
  Program program;
  const int left = program.add_column(1, simple_type(Kind::Int64));
  const int right = program.add_column(3, simple_type(Kind::Int64));
  Node node;
  node.function = "lt";
  node.type = simple_type(Kind::Bool);
  node.args = {left, right};
  program.set_predicate({program.add(std::move(node))});
  return program;
}

struct OutRow {
  Value key;
  Value value;
  Value right;
  bool operator==(const OutRow&) const = default;
};

struct Expected {
  std::vector<OutRow> rows;
  bool many = false;  // some stream row has more than one match
  std::vector<uint8_t> matched;
};

Expected nested_loops(ProbeKind kind, const Side& stream, const Side& build, bool residual) {
  Expected expected;
  expected.matched.resize(build.keys.size());
  for (size_t left = 0; left < stream.keys.size(); ++left) {
    int64_t matches = 0;
    for (size_t right = 0; right < build.keys.size(); ++right) {
      if (!stream.keys[left] || stream.keys[left] != build.keys[right]) continue;
      const bool both = stream.values[left].has_value() && build.values[right].has_value();
      if (residual && !(both && *stream.values[left] < *build.values[right])) continue;
      ++matches;
      expected.matched[right] = 1;
      if (kind <= ProbeKind::Single)
        expected.rows.push_back({stream.keys[left], stream.values[left], build.values[right]});
    }
    expected.many |= matches > 1;
    const bool padded = (kind == ProbeKind::Left || kind == ProbeKind::Single) && matches == 0;
    const bool kept = (kind == ProbeKind::Semi && matches > 0) || (kind == ProbeKind::Anti && matches == 0);
    if (padded || kept) expected.rows.push_back({stream.keys[left], stream.values[left], std::nullopt});
    if (kind == ProbeKind::Mark)
      expected.rows.push_back({stream.keys[left], stream.values[left], matches > 0 ? 1 : 0});
  }
  return expected;
}

void append(std::vector<OutRow>& rows, JoinPiece piece, const Batch& stream, ProbeKind kind) {
  const int64_t count = piece.rows;
  CHECK(count <= 131'072 + 16'384 + stream.rows());
  const Batch left = piece.all ? Batch{} : batch_of(std::move(piece.left), count);
  const bool has_right = !piece.right.empty();
  const Batch right = has_right ? batch_of(std::move(piece.right), count) : Batch{};
  for (int64_t row = 0; row < count; ++row) {
    const Batch& source = piece.all ? stream : left;
    OutRow out{long_at(source[0], row), long_at(source[1], row), std::nullopt};
    if (has_right)
      out.right = kind == ProbeKind::Mark ? Value(right[0].bool_at(row)) : long_at(right[0], row);
    rows.push_back(out);
  }
}

void test_kind(ProbeKind kind, size_t stream_rows, size_t build_rows, uint64_t spread, bool with_residual) {
  std::mt19937_64 random(stream_rows + spread);
  const Side stream = draw(random, stream_rows, spread);
  const Side build = draw(random, build_rows, spread);
  JoinTable table(batch(longs(build.keys)), 0);
  table.set_payload(batch_of_side(build));
  const Program residual = below();
  std::vector<uint8_t> matched(build_rows);
  ProbePlan plan{&table, kind, {0, 1}, {}, false, with_residual ? &residual : nullptr, 2, nullptr};
  if (kind <= ProbeKind::Single || kind == ProbeKind::Mark) plan.right_output = {1};
  if (kind <= ProbeKind::Single) plan.matched = matched.data();
  const Expected expected = nested_loops(kind, stream, build, with_residual);
  const Batch source = batch_of_side(stream);
  std::vector<OutRow> rows;
  bool failed = false;
  try {
    ProbeRun run(plan, batch_of_side(stream), batch(longs(stream.keys)));
    while (std::optional<JoinPiece> piece = run.next()) append(rows, std::move(*piece), source, kind);
  } catch (const CardinalityFault&) {
    failed = true;
  }
  CHECK(failed == (kind == ProbeKind::Single && expected.many));
  if (failed) return;
  CHECK(rows == expected.rows);
  if (plan.matched != nullptr) CHECK(matched == expected.matched);
  if (kind != ProbeKind::Semi) return;
  plan.matched = matched.data();
  ProbeRun(plan, batch_of_side(stream), batch(longs(stream.keys))).mark_matches();
  CHECK(matched == expected.matched);
}

// Each of many stream rows matches all of many build rows.
void test_skew(bool with_residual) {
  const Side stream{Longs(400, 7), Longs(400, 1)};
  Side build{Longs(2000, 7), Longs(2000, 2)};
  build.values[1999] = 0;
  JoinTable table(batch(longs(build.keys)), 0);
  table.set_payload(batch_of_side(build));
  const Program residual = below();
  const ProbePlan plan{&table, ProbeKind::Left, {0, 1}, {1}, false, with_residual ? &residual : nullptr,
                       2,      nullptr};
  const Batch source = batch_of_side(stream);
  ProbeRun run(plan, batch_of_side(stream), batch(longs(stream.keys)));
  int64_t rows = 0;
  int64_t pieces = 0;
  while (const std::optional<JoinPiece> piece = run.next()) {
    rows += piece->rows;
    ++pieces;
    CHECK(piece->rows <= 150'000);
  }
  CHECK(rows == 400 * (with_residual ? 1999 : 2000));
  CHECK(pieces >= 6);
}

// IN and NOT IN over one key: TRUE, FALSE, or NULL where a NULL stands in the way.
void test_null_aware(bool null_in_build) {
  const Longs build = null_in_build ? Longs{1, std::nullopt, 2} : Longs{1, 2};
  JoinTable table(batch(longs(build)), 0);
  table.set_payload(batch(longs(build)));
  const Longs probe = {1, 3, std::nullopt};
  const ProbePlan marks{&table, ProbeKind::Mark, {0}, {0}, true, nullptr, 1, nullptr};
  ProbeRun marking(marks, batch(longs(probe)), batch(longs(probe)));
  std::optional<JoinPiece> piece = marking.next();
  const Batch mark = batch_of(std::move(piece->right), piece->rows);
  CHECK(mark[0].is_valid(0) && mark[0].bool_at(0));
  CHECK(mark[0].is_valid(1) == !null_in_build && !mark[0].bool_at(1));
  CHECK(!mark[0].is_valid(2));
  const ProbePlan others{&table, ProbeKind::Anti, {0}, {}, true, nullptr, 1, nullptr};
  ProbeRun choosing(others, batch(longs(probe)), batch(longs(probe)));
  CHECK(choosing.next()->rows == (null_in_build ? 0 : 1));
  CHECK(!choosing.next().has_value());
}

}  // namespace

int main() {
  for (const ProbeKind kind : {ProbeKind::Inner, ProbeKind::Left, ProbeKind::Single, ProbeKind::Semi,
                               ProbeKind::Anti, ProbeKind::Mark}) {
    for (const bool residual : {false, true}) {
      test_kind(kind, 2100, 300, 3000, residual);
      test_kind(kind, 1500, 400, 20, residual);
      test_kind(kind, 1, 0, 20, residual);
      test_kind(kind, 0, 10, 20, residual);
    }
  }
  test_skew(false);
  test_skew(true);
  test_null_aware(false);
  test_null_aware(true);
  return finish();
}
