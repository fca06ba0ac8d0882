// The engine's errors as the classes of siamesenorm/errors.py.
#include <exception>
#include <new>

#include "python/binding/binding.h"

#include <torch/csrc/Exceptions.h>

#include "siamese/base/check.h"
#include "siamese/train/failure_text.h"

namespace siamese::python {
namespace {

void raise(const char* name, const std::string& message) {
  const py::object type = py::module_::import("siamesenorm.errors").attr(name);
  py::set_error(type, message.c_str());
}

void translate(std::exception_ptr thrown) {
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const UsageError& error) {
    raise("UsageError", error.what());
  } catch (const DataError& error) {
    raise("DataError", error.what());
  } catch (const DivergedError& error) {
    raise("DivergedError", error.what());
  } catch (const Error& error) {
    raise("MachineError", error.what());
  } catch (python_error& error) {  // of Python code that LibTorch called
    error.restore();
  } catch (const std::bad_alloc&) {
    PyErr_SetString(PyExc_MemoryError, "out of memory");
  } catch (const c10::Error& error) {
    PyErr_SetString(PyExc_RuntimeError, train::failure_text(error).c_str());
  }
}

}  // namespace

void add_errors(py::module_&) { py::register_local_exception_translator(translate); }

}  // namespace siamese::python
