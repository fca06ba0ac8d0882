// The compiled part of the Python package: each unit adds its functions to the module. Everything checks what it is
// given; an error is a Python exception with one line (errors.cc), never the end of the process.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <pybind11/stl.h>

#include <torch/csrc/utils/pybind.h>

namespace siamese::python {

namespace py = pybind11;

void add_errors(py::module_& module);
void add_schemes(py::module_& module);
void add_weights(py::module_& module);
void add_configs(py::module_& module);
void add_models(py::module_& module);
void add_training(py::module_& module);
void add_sweeps(py::module_& module);
void add_records(py::module_& module);
void add_conversion(py::module_& module);

}  // namespace siamese::python
