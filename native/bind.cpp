// The Python module `bireme.backends.native._kernels`: one bind_<family> per family, and the translation of errors.
#include <nanobind/nanobind.h>

#include <exception>

#include "arrow/errors.hpp"
#include "capsule.hpp"

namespace nb = nanobind;

namespace bireme {

void bind_hash(nb::module_& module);

namespace {

void raise_as(const char* name, const char* message) {
  nb::object error = nb::module_::import_("bireme.errors").attr(name);
  PyErr_SetString(error.ptr(), message);
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Overflow& error) {
    raise_as("Overflow", error.what());
  } catch (const ConversionFault& error) {
    raise_as("ConversionFault", error.what());
  } catch (const Unsupported& error) {
    raise_as("Unsupported", error.what());
  } catch (const EngineBug& error) {
    raise_as("EngineBug", error.what());
  }
}

}  // namespace

}  // namespace bireme

NB_MODULE(_kernels, module) {
  module.doc() = "bireme's C++ kernels; use them through bireme.backends.native.";
  nb::register_exception_translator(bireme::translate);
  nb::set_leak_warnings(false);
  bireme::bind_capsule(module);
  bireme::bind_hash(module);
}
