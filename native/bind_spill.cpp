// Spilled batches to files and back: see spill/block_file.hpp.
#include <nanobind/nanobind.h>

#include <cerrno>
#include <vector>

#include "pooled_bytes.hpp"
#include "spill/block_file.hpp"

namespace nb = nanobind;

namespace bireme {

namespace {

// The memory of Python objects that speak the buffer protocol, held for as long as this lives.
class HeldPieces {
 public:
  explicit HeldPieces(nb::sequence objects) {
    const size_t count = nb::len(objects);
    views_.reserve(count);
    pieces_.reserve(count);
    for (nb::handle object : objects) {
      Py_buffer& view = views_.emplace_back();
      if (PyObject_GetBuffer(object.ptr(), &view, PyBUF_SIMPLE) != 0) {
        views_.pop_back();
        release();
        throw nb::python_error();
      }
      pieces_.push_back({static_cast<const uint8_t*>(view.buf), static_cast<int64_t>(view.len)});
    }
  }
  ~HeldPieces() { release(); }
  HeldPieces(const HeldPieces&) = delete;
  HeldPieces& operator=(const HeldPieces&) = delete;

  std::span<const Piece> pieces() const { return pieces_; }

 private:
  void release() {
    for (Py_buffer& view : views_) PyBuffer_Release(&view);
    views_.clear();
  }

  std::vector<Py_buffer> views_;
  std::vector<Piece> pieces_;
};

void raise_errno(int error) {
  errno = error;
  PyErr_SetFromErrno(PyExc_OSError);
  throw nb::python_error();
}

uint32_t write_pieces(int descriptor, int64_t offset, nb::sequence objects) {
  const HeldPieces held(objects);
  RunWrite written;
  {
    nb::gil_scoped_release unlocked;
    written = write_run(descriptor, offset, held.pieces());
  }
  if (written.error != 0) raise_errno(written.error);
  return written.checksum;
}

nb::object read_pieces(int descriptor, int64_t offset, int64_t length) {
  RunRead read;
  {
    nb::gil_scoped_release unlocked;
    read = read_run(descriptor, offset, length);
  }
  if (read.ended_early) return nb::none();
  if (read.error != 0) raise_errno(read.error);
  return nb::make_tuple(nb::cast(PooledBytes{std::move(read.memory), read.start, length}), read.checksum);
}

}  // namespace

void bind_spill(nb::module_& module) {
  module.def("set_aside", &set_aside, nb::arg("descriptor"), nb::arg("length"),
             nb::call_guard<nb::gil_scoped_release>(),
             "Has the file system set aside so many bytes of a file, where it can.");
  module.def("write_run", &write_pieces, nb::arg("descriptor"), nb::arg("offset"), nb::arg("pieces"),
             "Writes the pieces one after the other in whole blocks; gives their CRC-32C. Raises OSError.");
  module.def("read_run", &read_pieces, nb::arg("descriptor"), nb::arg("offset"), nb::arg("length"),
             "Bytes of a file, read in whole blocks, and their CRC-32C; None where the file ends before. "
             "Raises OSError.");
}

}  // namespace bireme
