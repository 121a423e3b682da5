#include "kernels/top_per_key.hpp"

#include <algorithm>

#include "arrow/errors.hpp"
#include "kernels/group_read.hpp"

namespace bireme {

namespace {

constexpr uint64_t kSignBit = uint64_t{1} << 63;

}  // namespace

TopPerKey::TopPerKey(const std::vector<Type>& key_types, const Type& order_type, SortKey order, int64_t limit,
                     bool distinct)
    : order_(order),
      order_type_(order_type),
      limit_(limit),
      distinct_(distinct),
      keys_(std::make_unique<KeyIndex>(key_types, std::vector<bool>(key_types.size(), true))) {
  if (!is_word(order_type.kind)) {
    throw Unsupported("the first rows by Arrow format '" + order_type.format + "' of each key");
  }
  if (limit < 1) throw EngineBug("no row of a key is wanted");
}

OutputColumn TopPerKey::keep(const Batch& batch) {
  if (batch.count() < 1) throw EngineBug("the rows of keys lack their order");
  std::vector<const Column*> columns;
  for (int index = 0; index + 1 < batch.count(); ++index) columns.push_back(&batch[index]);
  const Column& order = batch[batch.count() - 1];
  if (order.type.kind != order_type_.kind) throw EngineBug("an order of keys has another type than planned");
  KeyRows rows_of_keys(*keys_, columns);
  rows_of_keys.announce(*keys_, batch.rows());
  Buffer positions(batch.rows() * 4);
  auto* kept = positions.as<int32_t>();
  int64_t count = 0;
  uint32_t keys[kVectorRows];
  uint64_t codes[kVectorRows];
  for (int64_t begin = 0; begin < batch.rows(); begin += kVectorRows) {
    const int64_t rows = std::min(kVectorRows, batch.rows() - begin);
    rows_of_keys.find_or_add(*keys_, begin, rows, keys);
    firsts_.resize(int64_t{keys_->size()} * limit_, UINT64_MAX);
    read_codes(order, begin, rows, codes);
    uint64_t* firsts = firsts_.data();
    for (int64_t row = 0; row < rows; ++row) __builtin_prefetch(firsts + keys[row] * limit_);
    for (int64_t row = 0; row < rows; ++row) {
      uint64_t* of_key = firsts + keys[row] * limit_;
      const uint64_t last = of_key[limit_ - 1];
      if (codes[row] > last) continue;
      kept[count++] = static_cast<int32_t>(begin + row);
      if (codes[row] < last) remember(of_key, codes[row]);
    }
  }
  OutputColumn column;
  column.type = simple_type(Kind::Int32);
  column.rows = count;
  column.values = std::move(positions);
  return column;
}

// Words that are ordered as the rows are, though some that differ may be equal: NULL stands beside the
// outermost values.
void TopPerKey::read_codes(const Column& column, int64_t begin, int64_t rows, uint64_t* codes) const {
  bireme::read_words(column, begin, rows, codes);
  const uint64_t turn = order_.descending ? ~kSignBit : kSignBit;
  for (int64_t row = 0; row < rows; ++row) codes[row] = order_word(order_type_.kind, codes[row]) ^ turn;
  uint8_t valid[kVectorRows];
  if (!read_validity(column, begin, rows, valid)) return;
  for (int64_t row = 0; row < rows; ++row) {
    if (valid[row] == 0) codes[row] = order_.nulls_first ? 0 : UINT64_MAX;
  }
}

void TopPerKey::remember(uint64_t* firsts, uint64_t code) const {
  if (distinct_ && std::find(firsts, firsts + limit_, code) != firsts + limit_) return;
  int64_t place = limit_ - 1;
  for (; place > 0 && firsts[place - 1] > code; --place) firsts[place] = firsts[place - 1];
  firsts[place] = code;
}

}  // namespace bireme
