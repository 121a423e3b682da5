#include "arrow/output.hpp"

#include <memory>
#include <string>
#include <utility>

namespace bireme {

namespace {

// What an exported array owns. Children and dictionaries are owned by the parent unless a consumer has moved
// them out (release == null).
struct ArrayHolder {
  OutputColumn column;
  std::shared_ptr<const OutputColumn> shared;  // of dictionaries, instead of `column`
  const void* buffers[3] = {nullptr, nullptr, nullptr};
  std::vector<ArrowArray> children;
  std::vector<ArrowArray*> child_pointers;
  ArrowArray dictionary{};
};

struct SchemaHolder {
  std::string format;
  std::string name;
  std::vector<ArrowSchema> children;
  std::vector<ArrowSchema*> child_pointers;
  ArrowSchema dictionary{};
};

void release_array(ArrowArray* array) {
  auto* holder = static_cast<ArrayHolder*>(array->private_data);
  for (ArrowArray& child : holder->children) {
    if (child.release != nullptr) child.release(&child);
  }
  if (holder->dictionary.release != nullptr) holder->dictionary.release(&holder->dictionary);
  delete holder;
  array->release = nullptr;
}

void release_schema(ArrowSchema* schema) {
  auto* holder = static_cast<SchemaHolder*>(schema->private_data);
  for (ArrowSchema& child : holder->children) {
    if (child.release != nullptr) child.release(&child);
  }
  if (holder->dictionary.release != nullptr) holder->dictionary.release(&holder->dictionary);
  delete holder;
  schema->release = nullptr;
}

void fill_schema(const std::string& format, ArrowSchema* schema, size_t child_count, std::string name = "") {
  auto holder = std::make_unique<SchemaHolder>();
  holder->format = format;
  holder->name = std::move(name);
  holder->children.resize(child_count);
  for (ArrowSchema& child : holder->children) {
    child = ArrowSchema{};
    holder->child_pointers.push_back(&child);
  }
  *schema = ArrowSchema{};
  schema->format = holder->format.c_str();
  schema->name = holder->name.c_str();
  schema->flags = ARROW_FLAG_NULLABLE;
  schema->n_children = static_cast<int64_t>(child_count);
  schema->children = holder->child_pointers.data();
  schema->release = release_schema;
  schema->private_data = holder.release();
}

void fill_schema(const OutputColumn& column, ArrowSchema* schema, std::string name) {
  fill_schema(column.type.format, schema, 0, std::move(name));
  if (column.dictionary == nullptr) return;
  auto* holder = static_cast<SchemaHolder*>(schema->private_data);
  fill_schema(column.dictionary->type.format, &holder->dictionary, 0);
  schema->dictionary = &holder->dictionary;
}

int64_t buffer_count(Kind kind) {
  if (kind == Kind::Null) return 0;
  return is_string(kind) ? 3 : 2;
}

// Describes `column`, which `holder` keeps alive.
void describe(const OutputColumn& column, std::unique_ptr<ArrayHolder> holder, ArrowArray* array) {
  *array = ArrowArray{};
  array->length = column.rows;
  array->null_count = column.type.kind == Kind::Null ? column.rows : column.validity ? column.null_count : 0;
  array->n_buffers = buffer_count(column.type.kind);
  holder->buffers[0] = column.validity.data();
  holder->buffers[1] = is_string(column.type.kind) ? column.offsets.data() : column.values.data();
  holder->buffers[2] = column.values.data();
  array->buffers = holder->buffers;
  array->release = release_array;
  array->private_data = holder.release();
}

void fill_array(OutputColumn column, ArrowArray* array) {
  auto owner = std::make_unique<ArrayHolder>();
  owner->column = std::move(column);
  ArrayHolder* holder = owner.get();
  describe(holder->column, std::move(owner), array);
  if (holder->column.dictionary == nullptr) return;
  auto entries = std::make_unique<ArrayHolder>();
  entries->shared = holder->column.dictionary;
  describe(*holder->column.dictionary, std::move(entries), &holder->dictionary);
  array->dictionary = &holder->dictionary;
}

}  // namespace

Column view_of(const OutputColumn& output) {
  Column column;
  column.type = output.type;
  column.rows = output.rows;
  column.null_count = output.null_count;
  column.validity = output.validity.as<uint8_t>();
  column.values = output.values.data();
  column.offsets = output.offsets.as<int32_t>();
  return column;
}

void export_column(OutputColumn column, ArrowArray* array, ArrowSchema* schema) {
  fill_schema(column, schema, "");
  fill_array(std::move(column), array);
}

void export_batch(std::vector<OutputColumn> columns, int64_t rows, ArrowArray* array, ArrowSchema* schema,
                  std::span<const std::string> names) {
  fill_schema("+s", schema, columns.size());
  auto holder = std::make_unique<ArrayHolder>();
  holder->children.resize(columns.size());
  for (size_t index = 0; index < columns.size(); ++index) {
    fill_schema(columns[index], schema->children[index], index < names.size() ? names[index] : std::string());
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
