#include "kernels/expression/sink.hpp"

#include <algorithm>
#include <cstring>

#include "arrow/errors.hpp"
#include "kernels/expression/loops.hpp"

namespace bireme {

Sink::Sink(const Node& node, int index, const std::vector<Column>& columns, int64_t rows, Allowance& allowance)
    : node_(&node), index_(index), passed_(nullptr), allowance_(&allowance) {
  column_.rows = rows;
  column_.type = node.type;
  if (node.node_class == NodeClass::Column && columns[static_cast<size_t>(node.column)].is_dictionary()) {
    passed_ = &columns[static_cast<size_t>(node.column)];
    column_.type = simple_type(Kind::Int32);
    column_.values = Buffer(rows * 4);
  } else if (is_string(node.type.kind)) {
    column_.offsets = Buffer((rows + 1) * 4);
    column_.offsets.as<int32_t>()[0] = 0;
    column_.values = Buffer(0);
  } else if (node.type.kind == Kind::Bool) {
    column_.values = Buffer(bitmap_bytes(rows));
  } else if (node.type.kind != Kind::Null) {
    column_.values = Buffer(rows * width_of(node.physical));
  }
}

void Sink::offer_target(std::vector<void*>& targets, int64_t first) {
  const bool same_layout = passed_ == nullptr && !is_string(node_->type.kind) &&
                           node_->type.kind != Kind::Bool && node_->type.kind != Kind::Null;
  if (same_layout)
    targets[static_cast<size_t>(index_)] = column_.values.as<char>() + first * width_of(node_->physical);
}

void Sink::append(Evaluation& evaluation, Scope& scope, int64_t first) {
  if (passed_ != nullptr) return append_codes(evaluation, scope, first);
  const Vector& vector = evaluation.value(scope, index_);
  append_validity(vector, first, scope.count);
  if (is_string(node_->type.kind)) return append_strings(vector, first, scope.count);
  if (node_->type.kind == Kind::Bool) return append_bools(evaluation, vector, first, scope.count);
  if (node_->type.kind != Kind::Null) append_fixed(vector, first, scope.count);
}

void Sink::append_validity(const Vector& vector, int64_t first, int64_t count) {
  if (vector.valid == nullptr && !column_.validity) return;
  if (!column_.validity) {
    column_.validity = Buffer(bitmap_bytes(column_.rows));
    std::memset(column_.validity.data(), 0xff, static_cast<size_t>(first / 8));
  }
  uint8_t* bits = column_.validity.as<uint8_t>() + first / 8;
  if (vector.valid == nullptr || vector.constant) {
    const bool valid = vector.is_valid(0);
    std::memset(bits, valid ? 0xff : 0, static_cast<size_t>(bitmap_bytes(count)));
    column_.null_count += valid ? 0 : count;
    return;
  }
  loops().pack(vector.valid, count, bits);
  column_.null_count += count - loops().count_bytes(vector.valid, count);
}

void Sink::append_fixed(const Vector& vector, int64_t first, int64_t count) {
  const int64_t width = width_of(node_->physical);
  char* out = column_.values.as<char>() + first * width;
  if (vector.data == out) return;
  if (!vector.constant) {
    std::memcpy(out, vector.data, static_cast<size_t>(count * width));
    return;
  }
  for (int64_t row = 0; row < count; ++row)
    std::memcpy(out + row * width, vector.data, static_cast<size_t>(width));
}

void Sink::append_bools(Evaluation& evaluation, const Vector& vector, int64_t first, int64_t count) {
  uint8_t* bits = column_.values.as<uint8_t>() + first / 8;
  if (!vector.constant) return loops().pack(vector.as<uint8_t>(), count, bits);
  (void)evaluation;
  std::memset(bits, vector.at<uint8_t>(0) != 0 ? 0xff : 0, static_cast<size_t>(bitmap_bytes(count)));
}

char* Sink::room_for_text(int64_t bytes) {
  const int64_t wanted = text_bytes_ + bytes;
  if (wanted > INT32_MAX) throw TooMuchAtOnce("the texts of one column of a batch take more than 2 GiB");
  if (wanted > column_.values.capacity()) {
    allowance_->take(std::max(wanted, 2 * text_bytes_) - column_.values.capacity());
  }
  column_.values.grow(wanted);
  return column_.values.as<char>() + text_bytes_;
}

void Sink::append_strings(const Vector& vector, int64_t first, int64_t count) {
  int64_t bytes = 0;
  for (int64_t row = 0; row < count; ++row) bytes += vector.is_valid(row) ? vector.at<Str>(row).size : 0;
  char* at = room_for_text(bytes);
  int32_t* offsets = column_.offsets.as<int32_t>() + first + 1;
  for (int64_t row = 0; row < count; ++row) {
    if (vector.is_valid(row)) {
      const Str& text = vector.at<Str>(row);
      if (text.size != 0) std::memcpy(at, text.data, text.size);
      at += text.size;
    }
    offsets[row] = static_cast<int32_t>(at - column_.values.as<char>());
  }
  text_bytes_ += bytes;
}

void Sink::append_codes(Evaluation& evaluation, const Scope& scope, int64_t first) {
  loops().gather[2](passed_->values, scope.rows, scope.count, column_.values.as<int32_t>() + first);
  if (!passed_->may_have_nulls()) return;
  auto* valid = evaluation.arena().take_array<uint8_t>(scope.count);
  loops().gather_bits(passed_->validity, passed_->validity_offset, scope.rows, scope.count, valid);
  append_validity({nullptr, valid, false}, first, scope.count);
}

OutputColumn Sink::finish() {
  return std::move(column_);
}

}  // namespace bireme
