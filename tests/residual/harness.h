// Runs a scheme over toy sublayers, and compares it with equations written by hand on the same parameters.
#pragma once

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/tensors.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "siamese/nn/parameters.h"
#include "siamese/residual/registry.h"

namespace siamese::residual {

using testing::randn;

// A model of `blocks` blocks in double whose sublayers are G_i(x) = tanh(x W_i) + 0.3 x V_i.
class Toy {
 public:
  size_t depth() const { return static_cast<size_t>(2 * blocks); }

  Toy(const std::string& scheme, int64_t block_count, int64_t stream_width, const nn::NormSpec& spec,
      bool modulated = false, bool fresh = false, at::ScalarType dtype = at::kDouble)
      : blocks(block_count), width(stream_width), norm(spec), parameters(5, dtype) {
    const Build build{.width = width, .blocks = blocks, .norm = norm, .modulated = modulated};
    const nn::Scope root(parameters);
    topology = make_topology(scheme, root, build);
    for (int64_t i = 0; i < 2 * blocks; ++i) {
      junctions.push_back(topology->junction(root.child("site" + std::to_string(i)), site_at(i, blocks)));
      const auto seed = static_cast<uint64_t>(100 + 2 * i);
      w.push_back((randn({width, width}, seed) * 0.4).to(dtype).set_requires_grad(true));
      v.push_back((randn({width, width}, seed + 1) * 0.3).to(dtype).set_requires_grad(true));
    }
    if (fresh) return;
    // Random gains and shifts: a norm with gain 1 would hide a misplaced one.
    const c10::NoGradGuard no_grad;
    uint64_t seed = 500;
    for (const auto& parameter : parameters.list()) {
      parameter.value.copy_(0.5 * randn(parameter.value.sizes(), ++seed) +
                            (parameter.name.ends_with("bias") ? 0.0 : 1.0));
    }
  }

  at::Tensor sublayer(size_t i, const at::Tensor& x) const {
    branch_inputs.push_back(x);
    return at::tanh(x.matmul(w[i])) + 0.3 * x.matmul(v[i]);
  }

  // The engine's way.
  at::Tensor run(const at::Tensor& embedding, Recorder* recorder = nullptr, const at::Tensor& gate = {}) const {
    return topology->close(run_sites(topology->open(embedding), 0, depth(), recorder, gate));
  }
  Streams run_sites(Streams streams, size_t first, size_t last, Recorder* recorder = nullptr,
                    const at::Tensor& gate = {}) const {
    for (size_t i = first; i < last; ++i) {
      const ReadResult read = junctions[i]->read(streams, recorder);
      const at::Tensor value = sublayer(i, read.branch_input);
      if (recorder != nullptr) recorder->branch(junctions[i]->site(), read.branch_input, value);
      streams = junctions[i]->write(read.streams, {value, gate});
    }
    return streams;
  }

  const at::Tensor& parameter(const std::string& name) const {
    const nn::Parameter* const found = parameters.find(name);
    if (found == nullptr) throw std::runtime_error("the scheme has no parameter " + name);
    return found->value;
  }

  // Sets the gain of a norm (and its shift, if it has one): a number, or another model's.
  void set_norm(const std::string& name, double gain) const {
    const c10::NoGradGuard no_grad;
    parameter(name + ".weight").fill_(gain);
    if (const auto* const bias = parameters.find(name + ".bias")) bias->value.zero_();
  }
  void copy_norm(const std::string& name, const Toy& from, const std::string& its_name) const {
    const c10::NoGradGuard no_grad;
    parameter(name + ".weight").copy_(from.parameter(its_name + ".weight"));
    if (const auto* const bias = parameters.find(name + ".bias")) bias->value.copy_(from.parameter(its_name + ".bias"));
  }

  // The norm `name`, written out here, not taken from ops; eps 0 is the model's.
  at::Tensor normed(const std::string& name, const at::Tensor& x, double eps = 0) const {
    const double n = static_cast<double>(x.size(-1));
    if (parameters.find(name + ".alpha") != nullptr) return element_wise(name, x);
    at::Tensor u = x;
    if (norm.kind == nn::NormKind::layer) u = x - x.sum(-1, true) / n;
    at::Tensor y = u / ((u * u).sum(-1, true) / n + (eps > 0 ? eps : norm.eps)).sqrt();
    if (parameters.find(name + ".weight") != nullptr) y = y * parameter(name + ".weight");
    if (parameters.find(name + ".bias") != nullptr) y = y + parameter(name + ".bias");
    return y;
  }
  // g tanh(a x) + b, or with a shift g erf(a x + s) + b.
  at::Tensor element_wise(const std::string& name, const at::Tensor& x) const {
    const at::Tensor ax = parameter(name + ".alpha") * x;
    at::Tensor y = norm.kind == nn::NormKind::dyt ? at::tanh(ax) : at::erf(ax + parameter(name + ".shift"));
    if (parameters.find(name + ".weight") != nullptr) y = y * parameter(name + ".weight");
    return parameters.find(name + ".bias") != nullptr ? y + parameter(name + ".bias") : y;
  }
  at::Tensor at_site(size_t i, const std::string& name, const at::Tensor& x) const {
    return normed("site" + std::to_string(i) + "." + name, x);
  }

  // A parameter of site `i`.
  const at::Tensor& own(size_t i, const std::string& name) const {
    return parameter("site" + std::to_string(i) + "." + name);
  }

  // All parameters, all sublayer weights and the input.
  std::vector<at::Tensor> leaves(const at::Tensor& embedding) const {
    std::vector<at::Tensor> all = {embedding};
    for (const auto& parameter : parameters.list()) all.push_back(parameter.value);
    all.insert(all.end(), w.begin(), w.end());
    all.insert(all.end(), v.begin(), v.end());
    return all;
  }

  int64_t blocks;
  int64_t width;
  nn::NormSpec norm;
  nn::Parameters parameters;
  std::unique_ptr<Topology> topology;
  std::vector<std::unique_ptr<Junction>> junctions;
  std::vector<at::Tensor> w;
  std::vector<at::Tensor> v;
  mutable std::vector<at::Tensor> branch_inputs;  // of every sublayer call, in order
};

using Equation = std::function<at::Tensor(const Toy& toy, const at::Tensor& embedding)>;

// What every sublayer sees, the final state, and the gradient of every parameter, sublayer weight and of the input, at
// two shapes and every kind of norm.
inline void expect_equation(const std::string& scheme, const Equation& equation) {
  for (const auto& [blocks, width, batch] : {std::tuple{3, 6, 2}, std::tuple{4, 11, 1}}) {
    for (const auto& spec : {nn::NormSpec{.kind = nn::NormKind::rms, .eps = 1e-5},
                             nn::NormSpec{.kind = nn::NormKind::layer, .eps = 1e-6, .bias = true},
                             nn::NormSpec{.kind = nn::NormKind::dyt, .eps = 1e-5},
                             nn::NormSpec{.kind = nn::NormKind::derf, .eps = 1e-5, .bias = true}}) {
      const Toy toy(scheme, blocks, width, spec);
      const at::Tensor embedding = (randn({batch, 5, width}, 3) * 1.7).set_requires_grad(true);
      const std::string what = scheme + " width " + std::to_string(width) + " " + std::string(enum_text(spec.kind));
      const at::Tensor got = toy.run(embedding);
      const auto got_inputs = std::exchange(toy.branch_inputs, {});
      const at::Tensor wanted = equation(toy, embedding);
      testing::expect_relative(got, wanted, 1e-12, what);
      ASSERT_EQ(got_inputs.size(), toy.branch_inputs.size()) << what;
      for (size_t i = 0; i < got_inputs.size(); ++i) {
        testing::expect_relative(got_inputs[i], toy.branch_inputs[i], 1e-12,
                                 what + " branch input " + std::to_string(i));
      }
      const auto leaves = toy.leaves(embedding);
      const auto got_gradients = testing::gradients(got, leaves);
      const auto wanted_gradients = testing::gradients(wanted, leaves);
      double terms = 0;  // a mixing weight before a norm has a gradient of 0 that is a sum of such
      for (const auto& gradient : wanted_gradients) {
        if (gradient.defined()) terms = std::max(terms, testing::largest(gradient));
      }
      for (size_t i = 0; i < leaves.size(); ++i) {
        ASSERT_TRUE(got_gradients[i].defined()) << what << ": no gradient reaches leaf " << i;
        ASSERT_TRUE(wanted_gradients[i].defined()) << what << ": the equation does not use leaf " << i;
        testing::expect_relative(got_gradients[i], wanted_gradients[i], 1e-11, what + " gradient " + std::to_string(i),
                                 terms);
      }
    }
  }
}

}  // namespace siamese::residual
