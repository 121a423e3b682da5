// References to Python objects, for the modules that are written against Python's own interface.
#pragma once

#include <Python.h>

#include <utility>

namespace bireme::nodes {

// A reference that is given back.
class Ref {
 public:
  Ref() = default;
  explicit Ref(PyObject* owned) : object_(owned) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { Py_XDECREF(object_); }

  static Ref of(PyObject* borrowed) {
    Py_INCREF(borrowed);
    return Ref(borrowed);
  }
  explicit operator bool() const { return object_ != nullptr; }
  PyObject* get() const { return object_; }
  PyObject* shared() const { return of(object_).release(); }
  PyObject* release() { return std::exchange(object_, nullptr); }

 private:
  PyObject* object_ = nullptr;
};

}  // namespace bireme::nodes
