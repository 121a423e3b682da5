// A batch taken in through the C data interface: owns the exporter's arrays, offers a Column per child. Zero-copy, but for
// decimals of 128 bits that do not lie where kernels may load them.
#pragma once

#include <memory>
#include <vector>

#include "arrow/abi.hpp"
#include "arrow/buffer.hpp"
#include "arrow/column.hpp"

namespace bireme {

class Batch {
 public:
  // Takes both structs over (they are left released), whatever happens. A struct array is a batch, whose own offset is applied
  // to its children and which must have no NULLs of its own; any other array is a batch of one column.
  // Throws Unsupported for dictionaries whose codes are not int32, EngineBug for arrays that contradict themselves.
  static Batch take_over(ArrowArray* array, ArrowSchema* schema);

  // A batch of columns that others own, and that must outlive it.
  static Batch of_columns(std::vector<Column> columns, int64_t rows) {
    Batch batch;
    batch.columns_ = std::move(columns);
    batch.rows_ = rows;
    return batch;
  }

  Batch() = default;
  Batch(Batch&&) noexcept = default;
  Batch& operator=(Batch&&) noexcept = default;

  int64_t rows() const { return rows_; }
  int count() const { return static_cast<int>(columns_.size()); }
  const Column& operator[](int index) const { return columns_[static_cast<size_t>(index)]; }
  const std::vector<Column>& columns() const { return columns_; }

 private:
  struct Release {
    void operator()(ArrowArray* array) const {
      if (array->release != nullptr) array->release(array);
      delete array;
    }
    void operator()(ArrowSchema* schema) const {
      if (schema->release != nullptr) schema->release(schema);
      delete schema;
    }
  };

  Column view(const ArrowArray& array, const ArrowSchema& schema, int64_t extra_offset, int64_t rows);
  const void* aligned(const void* values, int64_t bytes);

  std::unique_ptr<ArrowArray, Release> array_;
  std::unique_ptr<ArrowSchema, Release> schema_;
  int64_t rows_ = 0;
  std::vector<Column> columns_;
  std::vector<std::unique_ptr<Column>> dictionaries_;
  std::vector<Buffer> copies_;
};

}  // namespace bireme
