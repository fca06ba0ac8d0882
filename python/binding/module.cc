#include "python/binding/binding.h"

PYBIND11_MODULE(_binding, module) {
  module.doc() = "The compiled part of siamesenorm; use the package.";
  siamese::python::add_errors(module);
  siamese::python::add_schemes(module);
  siamese::python::add_weights(module);
  siamese::python::add_configs(module);
  siamese::python::add_models(module);
  siamese::python::add_training(module);
  siamese::python::add_sweeps(module);
  siamese::python::add_records(module);
  siamese::python::add_conversion(module);
}
