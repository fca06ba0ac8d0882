// A scheme written in Python inside a model of the engine: the loop, the sublayers and the losses stay the engine's,
// and the four verbs are called in Python, on the thread that runs the model.
#pragma once

#include "python/binding/binding.h"

namespace siamese::python {

// How such a scheme is named in a config of the engine; it means nothing outside a PythonSchemeGuard.
inline constexpr const char* kPythonScheme = "python";

// Makes the name known to the engine (residual/registry.h), once for the process.
void register_python_scheme();

// While it lives, the models that this thread builds take a scheme of this name to be `verbs`
// (siamesenorm/_prototype.py); without one, or with None, the name is refused.
class PythonSchemeGuard {
 public:
  explicit PythonSchemeGuard(py::object verbs);
  ~PythonSchemeGuard();
  PythonSchemeGuard(const PythonSchemeGuard&) = delete;
  PythonSchemeGuard& operator=(const PythonSchemeGuard&) = delete;
};

}  // namespace siamese::python
