// Reading files into pooled memory: see arrow/file_read.hpp.
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <cerrno>

#include "arrow/errors.hpp"
#include "arrow/file_read.hpp"
#include "pooled_bytes.hpp"

namespace nb = nanobind;

namespace bireme {

namespace {

int fill_view(PyObject* self, Py_buffer* view, int flags) {
  PooledBytes& bytes = *nb::inst_ptr<PooledBytes>(nb::handle(self));
  return PyBuffer_FillInfo(view, self, bytes.buffer.as<char>() + bytes.start,
                           static_cast<Py_ssize_t>(bytes.length), 1, flags);
}

PyType_Slot pooled_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(fill_view)}, {0, nullptr}};

nb::object read_file_ranges(int descriptor, const std::vector<int64_t>& offsets,
                            const std::vector<int64_t>& lengths) {
  if (offsets.size() != lengths.size()) throw EngineBug("ranges with as many offsets as lengths are read");
  std::vector<FileRange> ranges;
  for (size_t index = 0; index < offsets.size(); ++index) ranges.push_back({offsets[index], lengths[index]});
  FileRead read;
  {
    nb::gil_scoped_release unlocked;
    read = read_ranges(descriptor, ranges);
  }
  if (read.ended_early) return nb::none();
  if (read.error != 0) {
    errno = read.error;
    PyErr_SetFromErrno(PyExc_OSError);
    throw nb::python_error();
  }
  nb::list found;
  for (Buffer& buffer : read.buffers) {
    const int64_t length = buffer.size();
    found.append(nb::cast(PooledBytes{std::move(buffer), 0, length}));
  }
  return found;
}

}  // namespace

void bind_read(nb::module_& module) {
  nb::class_<PooledBytes>(
      module, "PooledBytes", nb::type_slots(pooled_slots),
      "Bytes in pooled memory; `memoryview` and `pyarrow.py_buffer` see them without a copy.");
  module.def("read_ranges", &read_file_ranges, nb::arg("descriptor"), nb::arg("offsets"), nb::arg("lengths"),
             "Ranges of an open file, a PooledBytes each; None where the file ends before one does. Raises "
             "OSError.");
}

}  // namespace bireme
