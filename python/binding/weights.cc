// Initial weights of somebody else's layers, by the engine's rules.
#include <cmath>

#include "python/binding/binding.h"

#include <ATen/ATen.h>

#include "siamese/base/check.h"
#include "siamese/base/join.h"
#include "siamese/nn/expect.h"
#include "siamese/nn/init.h"

namespace siamese::python {
namespace {

void expect_number(const char* what, double got) {
  if (std::isfinite(got) && got >= 0) return;
  throw UsageError(std::string(what) + ": expected a number from 0, got " + std::to_string(got));
}

// `back`: the projection back to the streams. The value is a function of the seed and the name.
at::Tensor initial_weight(const std::string& rule, double std, double cut, int64_t width, int64_t blocks,
                          const std::string& name, uint64_t seed, const std::vector<int64_t>& shape, bool back,
                          int64_t block, bool depth_factor) {
  const auto known = enum_from_text<nn::InitRule>(rule);
  if (!known) {
    throw UsageError("rule: expected one of " + join(enum_choices<nn::InitRule>()) + ", got '" + rule + "'");
  }
  expect_number("std", std);
  expect_number("cut", cut);
  nn::expect_that(width >= 1, "width", "1 or more", width);
  nn::expect_that(blocks >= 1, "blocks", "1 or more", blocks);
  nn::expect_that(block >= 0 && block < blocks, "block", "0 to " + std::to_string(blocks - 1), block);
  nn::expect_that(shape.size() == 2, "weight", "two dimensions", static_cast<int64_t>(shape.size()));
  for (const int64_t size : shape) nn::expect_that(size >= 1, "weight", "sizes from 1", size);
  const nn::Initializer initializer({.rule = *known, .std = std, .cut = cut}, width, blocks);
  const nn::Init init = back ? initializer.output_projection(shape[1], shape[0], block, depth_factor)
                             : initializer.input_projection(shape[1], shape[0]);
  const nn::Parameters parameters(seed);
  return nn::Scope(parameters).add(name, nn::ParameterKind::linear, shape, init).value().detach();
}

}  // namespace

void add_weights(py::module_& module) {
  module.def("initial_weight", &initial_weight, py::arg("rule"), py::arg("std"), py::arg("cut"), py::arg("width"),
             py::arg("blocks"), py::arg("name"), py::arg("seed"), py::arg("shape"), py::arg("back"), py::arg("block"),
             py::arg("depth_factor"));
}

}  // namespace siamese::python
