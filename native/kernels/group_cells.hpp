// A growing array of plain values: what group tables keep per group.
//
// Rule: growing may throw std::bad_alloc and then changes nothing; everything else never throws.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "arrow/buffer.hpp"

namespace bireme {

template <typename T>
class Cells {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  int64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return buffer_.as<T>(); }
  const T* data() const { return buffer_.as<T>(); }
  T& operator[](int64_t index) { return buffer_.as<T>()[index]; }
  const T& operator[](int64_t index) const { return buffer_.as<T>()[index]; }
  int64_t nbytes() const { return buffer_.capacity(); }

  void reserve(int64_t size) {
    const int64_t bytes = size * static_cast<int64_t>(sizeof(T));
    if (bytes > buffer_.size()) buffer_.grow(bytes);
  }

  // New cells hold `fill`.
  void resize(int64_t size, T fill) {
    reserve(size);
    T* cells = data();
    for (int64_t index = size_; index < size; ++index) cells[index] = fill;
    size_ = size;
  }

  // New cells hold anything.
  void resize(int64_t size) {
    reserve(size);
    size_ = size;
  }

  void push_back(T value) {
    reserve(size_ + 1);
    data()[size_++] = value;
  }

  // Adds a value; the room was reserved.
  void append(T value) noexcept { data()[size_++] = value; }

  void clear() noexcept {
    buffer_.reset();
    size_ = 0;
  }

 private:
  Buffer buffer_;
  int64_t size_ = 0;
};

}  // namespace bireme
