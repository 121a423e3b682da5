// Spilled batches to files and back: see spill/block_file.hpp.
#include <nanobind/nanobind.h>

#include <cerrno>
#include <vector>

#include "pooled_bytes.hpp"
#include "spill/block_file.hpp"
#include "spill/frame_file.hpp"

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

nb::object write_pieces(int descriptor, int64_t offset, nb::sequence objects) {
  const HeldPieces held(objects);
  RunWrite written;
  {
    nb::gil_scoped_release unlocked;
    written = write_run(descriptor, offset, held.pieces());
  }
  if (written.error != 0) raise_errno(written.error);
  return nb::make_tuple(written.checksum, written.seconds);
}

nb::object read_pieces(int descriptor, int64_t offset, int64_t length) {
  RunRead read;
  {
    nb::gil_scoped_release unlocked;
    read = read_run(descriptor, offset, length);
  }
  if (read.ended_early) return nb::none();
  if (read.error != 0) raise_errno(read.error);
  return nb::make_tuple(nb::cast(PooledBytes{std::move(read.memory), read.start, length}), read.checksum,
                        read.seconds);
}

std::vector<uint8_t> flags_of(nb::sequence chosen) {
  std::vector<uint8_t> flags;
  for (nb::handle one : chosen) flags.push_back(nb::cast<bool>(one));
  return flags;
}

nb::object write_piece_frames(int descriptor, int64_t offset, nb::sequence objects, nb::sequence chosen) {
  const HeldPieces held(objects);
  const std::vector<uint8_t> flags = flags_of(chosen);
  FramesWrite written;
  {
    nb::gil_scoped_release unlocked;
    written = write_frames(descriptor, offset, held.pieces(), flags);
  }
  if (written.error != 0) raise_errno(written.error);
  return nb::make_tuple(written.stored, written.checksum, written.seconds, written.codec_seconds,
                        written.codec_wall);
}

nb::object read_piece_frames(int descriptor, int64_t offset, int64_t stored, int64_t length) {
  FramesRead read;
  {
    nb::gil_scoped_release unlocked;
    read = read_frames(descriptor, offset, stored, length);
  }
  if (read.error != 0) raise_errno(read.error);
  if (read.broken) return nb::none();
  return nb::make_tuple(nb::cast(PooledBytes{std::move(read.memory), 0, length}), read.checksum, read.seconds,
                        read.codec_seconds);
}

nb::list sample_pieces(nb::sequence objects) {
  const HeldPieces held(objects);
  std::vector<FrameSample> samples;
  {
    nb::gil_scoped_release unlocked;
    for (const Piece& piece : held.pieces()) samples.push_back(sample_frames(piece));
  }
  nb::list result;
  for (const FrameSample& sample : samples) result.append(nb::make_tuple(sample.share, sample.seconds));
  return result;
}

}  // namespace

void bind_spill(nb::module_& module) {
  module.def("set_aside", &set_aside, nb::arg("descriptor"), nb::arg("length"),
             nb::call_guard<nb::gil_scoped_release>(),
             "Has the file system set aside so many bytes of a file, where it can.");
  module.def("write_run", &write_pieces, nb::arg("descriptor"), nb::arg("offset"), nb::arg("pieces"),
             "Writes the pieces one after the other in whole blocks; gives their CRC-32C and the seconds "
             "that the file took. "
             "Raises OSError.");
  module.def("read_run", &read_pieces, nb::arg("descriptor"), nb::arg("offset"), nb::arg("length"),
             "Bytes of a file, read in whole blocks, their CRC-32C and the seconds that the file took; None "
             "where it ends before. "
             "Raises OSError.");
  module.def("write_frames", &write_piece_frames, nb::arg("descriptor"), nb::arg("offset"), nb::arg("pieces"),
             nb::arg("chosen"),
             "As write_run, in frames, those of chosen pieces compressed; gives the bytes of the run, its "
             "CRC-32C, the "
             "seconds that the file took and the processor seconds of compression and the seconds it took. "
             "Raises OSError.");
  module.def(
      "read_frames", &read_piece_frames, nb::arg("descriptor"), nb::arg("offset"), nb::arg("stored"),
      nb::arg("length"),
      "The `length` bytes of a run of frames, the CRC-32C of the run, the seconds that the file took and "
      "the processor seconds of expansion; None where it is not whole. Raises OSError.");
  module.def("sample_pieces", &sample_pieces, nb::arg("pieces"),
             "For each piece, what a part of it shrinks to, as a share, and processor seconds per byte; (1, "
             "0) for short "
             "ones.");
  module.attr("FRAME_BYTES") = kFrameBytes;
  module.attr("FRAME_HEAD_BYTES") = kFrameHeadBytes;
}

}  // namespace bireme
