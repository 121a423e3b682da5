// What chunk readers need of Python: codecs that we have no kernel for, and bytes that Python objects own.
#pragma once

#include <nanobind/nanobind.h>

#include <utility>

#include "parquet/chunk.hpp"

namespace bireme {

// Calls a Python function (codec, compressed bytes, size) -> buffer of that size. Takes the GIL for the call
// only.
class PythonDecompressor final : public parquet::Decompressor {
 public:
  // Needs the GIL, as does destruction.
  explicit PythonDecompressor(nanobind::object function) : function_(std::move(function)) {}
  void run(parquet::Codec codec, std::span<const uint8_t> in, std::span<uint8_t> out) override;

 private:
  nanobind::object function_;
};

// The bytes of an object with the buffer protocol, kept alive. Needs the GIL, as does destruction.
class HeldBytes {
 public:
  explicit HeldBytes(nanobind::handle object);
  ~HeldBytes();
  HeldBytes(HeldBytes&& other) noexcept : view_(other.view_) { other.view_.obj = nullptr; }
  HeldBytes& operator=(HeldBytes&&) = delete;

  std::span<const uint8_t> bytes() const {
    return {static_cast<const uint8_t*>(view_.buf), static_cast<size_t>(view_.len)};
  }

 private:
  Py_buffer view_{};
};

void bind_parquet(nanobind::module_& module);

}  // namespace bireme
