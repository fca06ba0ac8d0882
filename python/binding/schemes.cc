// The four verbs of every scheme as functions of tensors.
#include "python/binding/binding.h"
#include "python/binding/engine_model.h"
#include "python/binding/python_scheme.h"
#include "python/binding/scheme_keys.h"

#include <ATen/ATen.h>

#include "siamese/base/check.h"
#include "siamese/base/join.h"
#include "siamese/residual/registry.h"

namespace siamese::python {
namespace {

void expect_defined(const char* what, const at::Tensor& got) {
  if (!got.defined()) throw UsageError(std::string(what) + ": expected a tensor, got none");
}

// Sizes may be symbols of a compiler.
void expect_width(const char* what, const at::Tensor& got, int64_t width) {
  expect_defined(what, got);
  if (!got.is_floating_point() || got.dim() < 2 || got.sym_sizes().back() != width) {
    throw UsageError(c10::str(what, ": expected a floating-point tensor [..., tokens, ", width, "], got ",
                              got.scalar_type(), " ", got.sym_sizes()));
  }
}

void expect_all_defined(const char* what, const Tensors& got) {
  for (const auto& tensor : got) expect_defined(what, tensor);
}

Tensors open(const std::string& key, const Tensors& parameters, const at::Tensor& x) {
  const auto scheme = known_scheme(key);
  expect_all_defined("parameters", parameters);
  expect_width("x", x, scheme->width);
  return scheme->functional.open(scheme->ends("open.", parameters), x);
}

// The branch input comes last.
Tensors read(const std::string& key, int64_t site, const Tensors& parameters, const Tensors& streams) {
  const auto scheme = known_scheme(key);
  expect_all_defined("parameters", parameters);
  expect_all_defined("streams", streams);
  residual::FunctionalScheme::Read made = scheme->functional.read(site, parameters, streams);
  made.streams.push_back(std::move(made.branch_input));
  return std::move(made.streams);
}

Tensors write(const std::string& key, int64_t site, const Tensors& parameters, const Tensors& streams,
              const at::Tensor& branch, const std::optional<at::Tensor>& gate) {
  const auto scheme = known_scheme(key);
  expect_all_defined("parameters", parameters);
  expect_all_defined("streams", streams);
  expect_width("branch", branch, scheme->width);
  // A branch may wait for the next read, and there nobody would know whose it is.
  if (!streams.empty() && branch.sym_sizes() != streams[0].sym_sizes()) {
    throw UsageError(
        c10::str("branch: expected the shape of the streams ", streams[0].sym_sizes(), ", got ", branch.sym_sizes()));
  }
  if (!streams.empty() && branch.device() != streams[0].device()) {
    throw UsageError(
        c10::str("branch: expected the device of the streams, ", streams[0].device(), ", got ", branch.device()));
  }
  return scheme->functional.write(site, parameters, streams, branch, gate.value_or(at::Tensor()));
}

at::Tensor close(const std::string& key, const Tensors& parameters, const Tensors& streams) {
  const auto scheme = known_scheme(key);
  expect_all_defined("parameters", parameters);
  expect_all_defined("streams", streams);
  return scheme->functional.close(scheme->ends("close.", parameters), streams);
}

std::string key_of(const std::string& scheme, int64_t width, int64_t blocks, const std::string& norm, double eps,
                   const std::optional<double>& norm_alpha, bool bias, bool modulated, bool causal) {
  const auto kind = enum_from_text<nn::NormKind>(norm);
  if (!kind) {
    throw UsageError("norm: expected one of " + join(enum_choices<nn::NormKind>()) + ", got '" + norm + "'");
  }
  residual::Build build{.width = width, .blocks = blocks, .norm = {}, .modulated = modulated};
  build.norm = {.kind = *kind, .eps = eps, .bias = bias};
  if (norm_alpha) {
    if (!build.norm.pointwise())
      throw UsageError("norm_alpha: expected none for norm " + norm + ", which has no alpha");
    build.norm.alpha = *norm_alpha;
  }
  const std::string key = scheme_key(scheme, build);
  known_scheme(key);  // what cannot be built is said here
  if (causal) {       // and what may not be
    build.causal = true;
    const nn::Parameters shapes(0, at::kFloat, at::kMeta);
    residual::make_topology(scheme, nn::Scope(shapes), build);
  }
  return key;
}

std::vector<std::tuple<std::string, std::string, at::Tensor>> initial_values(const std::string& key, int64_t place,
                                                                             uint64_t seed) {
  const auto scheme = known_scheme(key);
  const auto& functional = scheme->functional;
  const bool at_ends = place == -1;
  const auto& specs = at_ends ? functional.end_parameters() : functional.site_parameters(place);
  const Tensors values =
      at_ends ? functional.initial_ends(seed)
              : functional.initial_site(place, seed, {}, junction_name(residual::site_at(place, scheme->blocks)));
  std::vector<std::tuple<std::string, std::string, at::Tensor>> list;
  for (size_t i = 0; i < specs.size(); ++i) {
    list.emplace_back(specs[i].name, std::string(enum_text(specs[i].kind)), values[i].detach());
  }
  return list;
}

std::tuple<std::string, double, double, double, bool> hints(const std::string& key, int64_t site) {
  const auto scheme = known_scheme(key);
  scheme->functional.site_parameters(site);  // UsageError for one that is not there
  const residual::Site at = residual::site_at(site, scheme->blocks);
  const auto& topology = scheme->functional.topology();
  const residual::BranchInit init = topology.branch_init(at);
  return {std::string(enum_text(topology.attention_norm(at))), init.value, init.ffn_input, init.output,
          init.depth_factor};
}

std::map<std::string, std::string> list_schemes() {
  std::map<std::string, std::string> equations;
  for (const auto& scheme : residual::schemes()) {
    if (scheme.doc.name != kPythonScheme) equations[scheme.doc.name] = scheme.doc.equation;
  }
  return equations;
}

}  // namespace

void add_schemes(py::module_& module) {
  register_python_scheme();
  using no_gil = py::call_guard<py::gil_scoped_release>;
  module.def("open", &open, py::arg("key"), py::arg("parameters"), py::arg("x"), no_gil());
  module.def("read", &read, py::arg("key"), py::arg("site"), py::arg("parameters"), py::arg("streams"), no_gil());
  module.def("write", &write, py::arg("key"), py::arg("site"), py::arg("parameters"), py::arg("streams"),
             py::arg("branch"), py::arg("gate"), no_gil());
  module.def("close", &close, py::arg("key"), py::arg("parameters"), py::arg("streams"), no_gil());
  module.def("scheme_key", &key_of, py::arg("scheme"), py::arg("width"), py::arg("blocks"), py::arg("norm"),
             py::arg("eps"), py::arg("norm_alpha"), py::arg("bias"), py::arg("modulated"), py::arg("causal"));
  module.def("initial_values", &initial_values, py::arg("key"), py::arg("place"), py::arg("seed"));
  module.def("hints", &hints, py::arg("key"), py::arg("site"));
  module.def("canonical_scheme", &residual::canonical_scheme, py::arg("text"));
  module.def("schemes", &list_schemes);
}

}  // namespace siamese::python
