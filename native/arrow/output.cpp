#include "arrow/output.hpp"

#include <memory>
#include <string>
#include <utility>

namespace bireme {

namespace {

// What an exported array owns. Children are owned by the parent unless a consumer has moved them out (release
// == null).
struct ArrayHolder {
  OutputColumn column;
  const void* buffers[3] = {nullptr, nullptr, nullptr};
  std::vector<ArrowArray> children;
  std::vector<ArrowArray*> child_pointers;
};

struct SchemaHolder {
  std::string format;
  std::vector<ArrowSchema> children;
  std::vector<ArrowSchema*> child_pointers;
};

void release_array(ArrowArray* array) {
  auto* holder = static_cast<ArrayHolder*>(array->private_data);
  for (ArrowArray& child : holder->children) {
    if (child.release != nullptr) child.release(&child);
  }
  delete holder;
  array->release = nullptr;
}

void release_schema(ArrowSchema* schema) {
  auto* holder = static_cast<SchemaHolder*>(schema->private_data);
  for (ArrowSchema& child : holder->children) {
    if (child.release != nullptr) child.release(&child);
  }
  delete holder;
  schema->release = nullptr;
}

void fill_schema(const std::string& format, ArrowSchema* schema, size_t child_count) {
  auto holder = std::make_unique<SchemaHolder>();
  holder->format = format;
  holder->children.resize(child_count);
  for (ArrowSchema& child : holder->children) {
    child = ArrowSchema{};
    holder->child_pointers.push_back(&child);
  }
  *schema = ArrowSchema{};
  schema->format = holder->format.c_str();
  schema->name = "";
  schema->flags = ARROW_FLAG_NULLABLE;
  schema->n_children = static_cast<int64_t>(child_count);
  schema->children = holder->child_pointers.data();
  schema->release = release_schema;
  schema->private_data = holder.release();
}

int64_t buffer_count(Kind kind) {
  if (kind == Kind::Null) return 0;
  return is_string(kind) ? 3 : 2;
}

void fill_array(OutputColumn column, ArrowArray* array) {
  auto holder = std::make_unique<ArrayHolder>();
  *array = ArrowArray{};
  array->length = column.rows;
  array->null_count = column.type.kind == Kind::Null ? column.rows : column.validity ? column.null_count : 0;
  array->n_buffers = buffer_count(column.type.kind);
  holder->column = std::move(column);
  OutputColumn& owned = holder->column;
  holder->buffers[0] = owned.validity.data();
  holder->buffers[1] = is_string(owned.type.kind) ? owned.offsets.data() : owned.values.data();
  holder->buffers[2] = owned.values.data();
  array->buffers = holder->buffers;
  array->release = release_array;
  array->private_data = holder.release();
}

}  // namespace

void export_column(OutputColumn column, ArrowArray* array, ArrowSchema* schema) {
  fill_schema(column.type.format, schema, 0);
  fill_array(std::move(column), array);
}

void export_batch(std::vector<OutputColumn> columns, int64_t rows, ArrowArray* array, ArrowSchema* schema) {
  fill_schema("+s", schema, columns.size());
  auto holder = std::make_unique<ArrayHolder>();
  holder->children.resize(columns.size());
  for (size_t index = 0; index < columns.size(); ++index) {
    fill_schema(columns[index].type.format, schema->children[index], 0);
    fill_array(std::move(columns[index]), &holder->children[index]);
    holder->child_pointers.push_back(&holder->children[index]);
  }
  *array = ArrowArray{};
  array->length = rows;
  array->n_buffers = 1;
  array->n_children = static_cast<int64_t>(columns.size());
  array->buffers = holder->buffers;
  array->children = holder->child_pointers.data();
  array->release = release_array;
  array->private_data = holder.release();
}

}  // namespace bireme
