// ParquetChunk: see parquet/chunk.hpp.
#include "bind_parquet.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <memory>
#include <string>
#include <tuple>

#include "arrow/errors.hpp"
#include "capsule.hpp"

namespace nb = nanobind;

namespace bireme {

HeldBytes::HeldBytes(nb::handle object) {
  if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) throw nb::python_error();
}

HeldBytes::~HeldBytes() {
  if (view_.obj != nullptr) PyBuffer_Release(&view_);
}

void PythonDecompressor::run(parquet::Codec codec, std::span<const uint8_t> in, std::span<uint8_t> out) {
  nb::gil_scoped_acquire locked;
  try {
    // The view is only good for the call: `in` belongs to the caller.
    auto* address = const_cast<char*>(reinterpret_cast<const char*>(in.data()));
    const auto view =
        nb::steal(PyMemoryView_FromMemory(address, static_cast<Py_ssize_t>(in.size()), PyBUF_READ));
    const HeldBytes plain(function_(static_cast<int>(codec), view, out.size()));
    if (plain.bytes().size() != out.size()) throw parquet::Corrupt("a page decompresses to another size");
    std::memcpy(out.data(), plain.bytes().data(), out.size());
  } catch (const nb::python_error& error) {
    throw parquet::Corrupt(std::string("a page does not decompress: ") + error.what());
  }
}

namespace {

using Page = std::tuple<int64_t, int32_t, int64_t>;

parquet::ChunkSpec make_spec(std::span<const uint8_t> bytes, const std::string& format, int physical,
                             int type_length, int codec, bool is_optional, int64_t rows,
                             const std::vector<Page>& pages, const std::pair<int64_t, int64_t>& scale) {
  parquet::ChunkSpec spec;
  spec.physical = static_cast<parquet::Physical>(physical);
  spec.type_length = type_length;
  spec.type = parse_type(format.c_str());
  spec.multiplier = scale.first;
  spec.divisor = scale.second;
  spec.codec = static_cast<parquet::Codec>(codec);
  spec.is_optional = is_optional;
  spec.rows = rows;
  spec.bytes = bytes;
  for (const auto& [offset, nbytes, first_row] : pages) spec.pages.push_back({offset, nbytes, first_row});
  return spec;
}

// The rows of an Arrow array of uint32, or all.
class WantedRows {
 public:
  explicit WantedRows(nb::handle rows) {
    if (rows.is_none()) return;
    batch_ = import_arrow(rows);
    if (batch_[0].type.kind != Kind::UInt32 || batch_[0].may_have_nulls())
      throw EngineBug("rows wanted are not uint32");
    static constexpr uint32_t kNothing = 0;
    selection_ = {batch_.rows() == 0 ? &kNothing : batch_[0].as<uint32_t>(), batch_.rows()};
  }
  const parquet::Selection& selection() const { return selection_; }

 private:
  Batch batch_;
  parquet::Selection selection_;
};

class ParquetChunk {
 public:
  ParquetChunk(nb::handle data, const std::string& format, int physical, int type_length, int codec,
               bool is_optional, int64_t rows, const std::vector<Page>& pages, int64_t multiplier,
               int64_t divisor, nb::object decompress)
      : data_(data),
        decompressor_(std::move(decompress)),
        reader_(make_spec(data_.bytes(), format, physical, type_length, codec, is_optional, rows, pages,
                          {multiplier, divisor}),
                &decompressor_) {}

  bool is_dictionary() {
    nb::gil_scoped_release unlocked;
    return reader_.is_dictionary();
  }

  Exported dictionary() {
    nb::gil_scoped_release unlocked;
    const Column& column = reader_.dictionary();
    OutputColumn copy;
    copy.type = column.type;
    copy.rows = column.rows;
    int64_t bytes = column.rows * width_of(column.type.kind);
    if (is_string(column.type.kind)) {
      bytes = column.offsets[column.rows];
      copy.offsets = Buffer((column.rows + 1) * 4);
      std::memcpy(copy.offsets.data(), column.offsets, static_cast<size_t>(copy.offsets.size()));
    }
    copy.values = Buffer(bytes);
    std::memcpy(copy.values.data(), column.values, static_cast<size_t>(bytes));
    return Exported(std::move(copy));
  }

  Exported read(nb::handle rows) {
    const WantedRows wanted(rows);
    nb::gil_scoped_release unlocked;
    return Exported(reader_.read(wanted.selection()));
  }

  Exported read_codes(nb::handle rows) {
    const WantedRows wanted(rows);
    nb::gil_scoped_release unlocked;
    return Exported(reader_.read_codes(wanted.selection()));
  }

  Exported select_codes(nb::handle rows, nb::bytes keep, bool keep_null) {
    const WantedRows wanted(rows);
    const std::span<const uint8_t> flags(static_cast<const uint8_t*>(keep.data()), keep.size());
    nb::gil_scoped_release unlocked;
    const parquet::Selection& selection = wanted.selection();
    OutputColumn out;
    out.type = simple_type(Kind::UInt32);
    out.values = Buffer((selection.all() ? reader_.rows() : selection.count) * 4);
    out.rows = reader_.select_codes(selection, flags, keep_null, out.values.as<uint32_t>());
    out.values.shrink(out.rows * 4);
    return Exported(std::move(out));
  }

  int64_t bytes_decompressed() const { return reader_.bytes_decompressed(); }
  int64_t pages_skipped() const { return reader_.pages_skipped(); }

 private:
  HeldBytes data_;
  PythonDecompressor decompressor_;
  parquet::ChunkReader reader_;
};

}  // namespace

void bind_parquet(nb::module_& module) {
  nb::class_<ParquetChunk>(module, "ParquetChunk",
                           "The reader of one flat column chunk, from bytes in memory.")
      .def(nb::init<nb::handle, const std::string&, int, int, int, bool, int64_t, const std::vector<Page>&,
                    int64_t, int64_t, nb::object>(),
           nb::arg("data"), nb::arg("format"), nb::kw_only(), nb::arg("physical"), nb::arg("type_length"),
           nb::arg("codec"), nb::arg("is_optional"), nb::arg("rows"), nb::arg("pages"), nb::arg("multiplier"),
           nb::arg("divisor"), nb::arg("decompress").none())
      .def("is_dictionary", &ParquetChunk::is_dictionary)
      .def("dictionary", &ParquetChunk::dictionary)
      .def("read", &ParquetChunk::read, nb::arg("rows").none())
      .def("read_codes", &ParquetChunk::read_codes, nb::arg("rows").none())
      .def("select_codes", &ParquetChunk::select_codes, nb::arg("rows").none(), nb::arg("keep"),
           nb::arg("keep_null"))
      .def_prop_ro("bytes_decompressed", &ParquetChunk::bytes_decompressed)
      .def_prop_ro("pages_skipped", &ParquetChunk::pages_skipped);
}

}  // namespace bireme
