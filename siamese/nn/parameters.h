// The parameters of a model: one flat list with names and kinds. A part that owns a weight asks its Scope for it; the
// optimizer's decay groups read the kind, never the name. A value at initialisation is a pure function of
// (seed, name, index): two schemes share the initial values of every weight that both have.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "siamese/base/enum_text.h"

namespace siamese::nn {

enum class ParameterKind { linear, bias, norm, embedding, scalar, stream_mix };

struct Parameter {
  std::string name;
  ParameterKind kind;
  at::Tensor value;  // a leaf that requires its gradient
};

// A fixed table that belongs to the model and not to its function's freedom: stored with the weights, read back as
// given, without a gradient. A file that lacks it is complete: then it is as computed.
struct Buffer {
  std::string name;
  at::Tensor value;
};

// How a fresh parameter starts: constant, normal with `std` cut at +-`cut` std (cut 0 = uncut), or uniform in
// +-`limit`.
struct Init {
  double constant = 0;
  double std = 0;
  double cut = 0;
  double limit = 0;

  static Init ones() { return {.constant = 1}; }
  static Init zeros() { return {}; }
  static Init normal(double std, double cut) { return {.std = std, .cut = cut}; }
  static Init uniform(double limit) { return {.limit = limit}; }
};

class Parameters {
 public:
  // `device` meta makes shapes only: counting the parameters of a model too large for this machine.
  explicit Parameters(uint64_t seed, at::ScalarType dtype = at::kFloat, at::Device device = at::kCPU);

  const std::vector<Parameter>& list() const { return list_; }
  const std::vector<Buffer>& buffers() const { return buffers_; }
  const Parameter* find(std::string_view name) const;
  int64_t count() const;  // elements
  uint64_t seed() const { return seed_; }
  at::TensorOptions options() const { return options_; }
  void zero_grad() const;

 private:
  friend class Scope;
  uint64_t seed_;
  at::TensorOptions options_;
  std::vector<Parameter> list_;
  std::vector<Buffer> buffers_;
};

// One buffer for all gradients, kept from step to step: every parameter's .grad becomes a view of it, which backward
// adds to. Without it a .grad is allocated anew at each first backward.
class GradientBuffer {
 public:
  explicit GradientBuffer(const Parameters& parameters);
  void zero() const;

 private:
  at::Tensor buffer_;
};

// A place in the tree of names: scope.child("blocks").child("0").add("weight", ...) makes "blocks.0.weight".
class Scope {
 public:
  explicit Scope(Parameters& parameters) : parameters_(&parameters) {}
  Scope child(std::string_view name) const;
  at::Tensor add(std::string_view name, ParameterKind kind, at::IntArrayRef shape, const Init& init) const;
  at::Tensor add_buffer(std::string_view name, const at::Tensor& value) const;
  Parameters& parameters() const { return *parameters_; }

 private:
  Parameters* parameters_;
  std::string prefix_;
};

// Writes single elements of a fresh parameter (a one-hot, a diagonal); does nothing on the meta device.
void set_initial(const at::Tensor& fresh, const std::function<void(at::Tensor value)>& write);

// Multiplies rows [begin, end) of a fresh weight: a scheme's init factor on one part of a fused projection.
void scale_rows(const at::Tensor& weight, int64_t begin, int64_t end, double factor);

}  // namespace siamese::nn

template <>
struct siamese::EnumText<siamese::nn::ParameterKind> {
  static constexpr EnumNames<nn::ParameterKind, 6> names{{{nn::ParameterKind::linear, "linear"},
                                                          {nn::ParameterKind::bias, "bias"},
                                                          {nn::ParameterKind::norm, "norm"},
                                                          {nn::ParameterKind::embedding, "embedding"},
                                                          {nn::ParameterKind::scalar, "scalar"},
                                                          {nn::ParameterKind::stream_mix, "stream_mix"}}};
};
