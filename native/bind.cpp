// The Python module `bireme.backends.native._kernels`: one bind_<family> per family, and the translation of
// errors.
#include <nanobind/nanobind.h>

#include <exception>
#include <new>

#include "arrow/errors.hpp"
#include "bind_parquet.hpp"
#include "capsule.hpp"

namespace nb = nanobind;

namespace bireme {

void bind_group(nb::module_& module);
void bind_hash(nb::module_& module);
void bind_join(nb::module_& module);
void bind_program(nb::module_& module);
void bind_read(nb::module_& module);
void bind_scan(nb::module_& module);
void bind_sort(nb::module_& module);
void bind_spill(nb::module_& module);
void bind_take(nb::module_& module);
void bind_window(nb::module_& module);

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
  } catch (const DomainFault& error) {
    raise_as("DomainFault", error.what());
  } catch (const CardinalityFault& error) {
    raise_as("CardinalityFault", error.what());
  } catch (const TooMuchAtOnce& error) {
    raise_as("TooMuchAtOnce", error.what());
  } catch (const Unsupported& error) {
    raise_as("Unsupported", error.what());
  } catch (const parquet::Corrupt& error) {
    raise_as("SourceCorrupt", error.what());
  } catch (const EngineBug& error) {
    raise_as("EngineBug", error.what());
  } catch (const std::bad_alloc&) {
    raise_as("OutOfRoom",
             "the operating system has no more memory for a kernel; lower memory_limit or free memory");
  }
}

}  // namespace

}  // namespace bireme

NB_MODULE(_kernels, module) {
  module.doc() = "bireme's C++ kernels; use them through bireme.backends.native.";
  nb::register_exception_translator(bireme::translate);
  nb::set_leak_warnings(false);
  bireme::bind_capsule(module);
  bireme::bind_group(module);
  bireme::bind_hash(module);
  bireme::bind_join(module);
  bireme::bind_parquet(module);
  bireme::bind_program(module);
  bireme::bind_read(module);
  bireme::bind_scan(module);
  bireme::bind_sort(module);
  bireme::bind_spill(module);
  bireme::bind_take(module);
  bireme::bind_window(module);
}
