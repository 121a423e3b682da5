#include "kernels/join_judge.hpp"

#include <vector>

#include "kernels/expression/program.hpp"
#include "kernels/gather.hpp"

namespace bireme {

namespace {

Column view_of(const OutputColumn& column, const Column& source) {
  Column view;
  view.type = source.type;
  view.rows = column.rows;
  view.null_count = column.null_count;
  view.validity = column.validity.as<uint8_t>();
  view.values = column.values.data();
  view.offsets = column.offsets.as<int32_t>();
  view.dictionary = source.dictionary;
  return view;
}

}  // namespace

int64_t keep_true(const Program& residual, int stream_columns, const Batch& stream, const Batch& build,
                  uint32_t* positions, uint32_t* found, int64_t pairs) {
  if (pairs == 0) return 0;
  std::vector<Column> columns(static_cast<size_t>(stream_columns + build.count()));
  std::vector<OutputColumn> gathered(columns.size());
  for (const Node& node : residual.nodes()) {
    if (node.node_class != NodeClass::Column) continue;
    const auto at = static_cast<size_t>(node.column);
    if (gathered[at].rows == pairs) continue;
    const bool is_left = node.column < stream_columns;
    const Column& source = is_left ? stream[node.column] : build[node.column - stream_columns];
    gathered[at] = gather(source, is_left ? positions : found, pairs, false);
    columns[at] = view_of(gathered[at], source);
  }
  const Program::Result verdict = residual.run(columns, pairs, false);
  if (verdict.all) return pairs;
  const auto* kept = verdict.selection.as<uint32_t>();
  for (int64_t pair = 0; pair < verdict.rows; ++pair) {
    positions[pair] = positions[kept[pair]];
    found[pair] = found[kept[pair]];
  }
  return verdict.rows;
}

}  // namespace bireme
