#include "arrow/batch.hpp"

#include <cstring>

#include "arrow/errors.hpp"

namespace bireme {

namespace {

const int32_t kNoOffsets[1] = {0};

void check_buffers(const ArrowArray& array, int64_t wanted, const char* format) {
  if (array.n_buffers < wanted) {
    throw EngineBug(std::string("Arrow array of format '") + format + "' has " +
                    std::to_string(array.n_buffers) + " buffers, not " + std::to_string(wanted));
  }
}

// Unions and run-ends.
bool has_no_bitmap(const char* format) {
  return format[0] == '+' && (format[1] == 'u' || format[1] == 'r');
}

}  // namespace

Batch Batch::take_over(ArrowArray* array, ArrowSchema* schema) {
  Batch batch;
  batch.array_.reset(new ArrowArray(*array));
  array->release = nullptr;
  batch.schema_.reset(new ArrowSchema(*schema));
  schema->release = nullptr;
  const ArrowArray& top = *batch.array_;
  const ArrowSchema& type = *batch.schema_;
  batch.rows_ = top.length;
  if (std::strcmp(type.format, "+s") != 0) {
    batch.columns_.push_back(batch.view(top, type, 0, top.length));
    return batch;
  }
  if (top.n_children != type.n_children) throw EngineBug("Arrow batch and its schema differ in columns");
  if (top.null_count > 0) throw EngineBug("an Arrow batch must not have NULL rows");
  batch.columns_.reserve(static_cast<size_t>(top.n_children));
  for (int64_t index = 0; index < top.n_children; ++index) {
    batch.columns_.push_back(batch.view(*top.children[index], *type.children[index], top.offset, top.length));
  }
  return batch;
}

// Files of Arrow are read where they lie, and there buffers begin at multiples of 8 only.
const void* Batch::aligned(const void* values, int64_t bytes) {
  if (reinterpret_cast<uintptr_t>(values) % alignof(int128) == 0 || bytes == 0) return values;
  copies_.emplace_back(bytes);
  std::memcpy(copies_.back().data(), values, static_cast<size_t>(bytes));
  return copies_.back().data();
}

Column Batch::view(const ArrowArray& array, const ArrowSchema& schema, int64_t extra_offset, int64_t rows) {
  if (array.length < extra_offset + rows) throw EngineBug("an Arrow column is shorter than its batch");
  Column column;
  column.rows = rows;
  const int64_t offset = array.offset + extra_offset;
  column.null_count = rows == array.length ? array.null_count : array.null_count == 0 ? 0 : -1;
  if (schema.dictionary != nullptr) {
    if (std::strcmp(schema.format, "i") != 0) {
      throw Unsupported(std::string("dictionary codes must be int32, not of Arrow format '") + schema.format +
                        "'");
    }
    check_buffers(array, 2, schema.format);
    dictionaries_.push_back(
        std::make_unique<Column>(view(*array.dictionary, *schema.dictionary, 0, array.dictionary->length)));
    column.dictionary = dictionaries_.back().get();
    column.type = column.dictionary->type;
    column.values = static_cast<const int32_t*>(array.buffers[1]) + offset;
  } else {
    column.type = parse_type(schema.format);
  }
  if (column.type.kind == Kind::Null) {
    column.null_count = rows;
    return column;
  }
  // Types that are only carried say at least which of their values are NULL, where their layout has a bitmap.
  const bool carried = column.type.kind == Kind::Other;
  if (carried && has_no_bitmap(schema.format)) return column;
  if (column.null_count != 0 && array.buffers[0] != nullptr) {
    column.validity = static_cast<const uint8_t*>(array.buffers[0]) + offset / 8;
    column.validity_offset = offset % 8;
  } else {
    column.null_count = 0;
  }
  if (carried || column.dictionary != nullptr) return column;
  const Kind kind = column.type.kind;
  if (is_string(kind)) {
    check_buffers(array, 3, schema.format);
    // An empty array may come without offsets at all.
    column.offsets =
        array.buffers[1] != nullptr ? static_cast<const int32_t*>(array.buffers[1]) + offset : kNoOffsets;
    column.values = array.buffers[2] != nullptr ? array.buffers[2] : "";
  } else if (kind == Kind::Bool) {
    check_buffers(array, 2, schema.format);
    column.values = static_cast<const uint8_t*>(array.buffers[1]) + offset / 8;
    column.bool_offset = offset % 8;
  } else {
    check_buffers(array, 2, schema.format);
    column.values = static_cast<const char*>(array.buffers[1]) + offset * width_of(kind);
    if (kind == Kind::Decimal128) column.values = aligned(column.values, rows * width_of(kind));
  }
  return column;
}

}  // namespace bireme
