// The parameters of a model: one flat list with names and kinds. A part that owns a weight asks its Scope for it; the
// optimizer's decay groups read the kind, never the name. A value at initialisation is a pure function of
// (seed, name, index): two schemes share the initial values of every weight that both have.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "siamese/base/enum_text.h"
#include "siamese/nn/slot.h"

namespace siamese::nn {

enum class ParameterKind { linear, bias, norm, embedding, scalar, stream_mix };

struct Parameter {
  std::string name;
  ParameterKind kind;
  at::Tensor value;  // fresh: a leaf that requires its gradient
  // Of a linear weight from one hidden state to another: the rows of each matrix in it, one below the other (q, k and
  // v; up and gate). Empty where it begins or ends a model or makes a few numbers of a state (patches, head, router),
  // and for the other kinds. An optimizer of matrices (train/muon.h) goes by this.
  std::vector<int64_t> matrices = {};
};

// A fixed table of the model: stored with the weights, read back as given, without a gradient. A file that lacks it is
// complete: then it is as computed.
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

// What Parameters, Scope and Slot share.
struct ParameterStore {
  uint64_t seed = 0;
  at::TensorOptions options;  // of fresh values
  std::vector<Parameter> list;
  std::vector<Buffer> buffers;
  bool from_outside = false;                // every value is given, none is made
  std::map<std::string, at::Tensor> given;  // and not yet asked for
};

// UsageError unless `got` can stand in the place of `held`: a defined tensor of its shape, floating-point.
void check_fits(const std::string& name, const at::Tensor& held, const at::Tensor& got);

// A handle: copies are the same parameters.
class Parameters {
 public:
  // Fresh ones. `device` meta makes shapes only: counting the parameters of a model too large for this machine.
  explicit Parameters(uint64_t seed, at::ScalarType dtype = at::kFloat, at::Device device = at::kCPU);

  // Those of an owner outside, by dotted name; they are taken as they are. What is built asks for each: UsageError
  // where one is missing or has another shape. Buffers may be missing; then they are computed.
  explicit Parameters(std::map<std::string, at::Tensor> given);
  // UsageError naming what was given and nobody asked for: to be called when everything is built.
  void expect_all_used() const;

  const std::vector<Parameter>& list() const { return store_->list; }
  const std::vector<Buffer>& buffers() const { return store_->buffers; }
  const Parameter* find(std::string_view name) const;
  int64_t count() const;  // elements
  uint64_t seed() const { return store_->seed; }
  // Type and device of the parameters as they are now.
  at::TensorOptions options() const;
  // What the slots give now, on this thread, in the order of the list.
  std::vector<at::Tensor> values() const;
  void zero_grad() const;

  // Another tensor in the place of a parameter or buffer; every part sees it at its next call. UsageError when there is
  // none of this name or the shape is another. Not while another thread computes.
  void set(std::string_view name, const at::Tensor& value) const;

 private:
  friend class Scope;
  friend class ParameterGuard;
  explicit Parameters(std::shared_ptr<ParameterStore> store) : store_(std::move(store)) {}
  std::shared_ptr<ParameterStore> store_;
};

// One buffer for all gradients, kept from step to step: every parameter's .grad becomes a view of it, which backward
// adds to. Without it a .grad is allocated anew at each first backward. `zero` puts back the views that were taken away
// meanwhile (zero_grad, another tensor in a parameter's place). A parameter that requires no gradient has none here.
// All parameters are of one type on one device: UsageError.
class GradientBuffer {
 public:
  explicit GradientBuffer(const Parameters& parameters);
  void zero() const;
  // All gradients in one row, with a few zeros between them.
  const at::Tensor& whole() const { return buffer_; }
  // Where each parameter's gradient begins in it, in the order of the list; without one, where it would.
  const std::vector<int64_t>& begins() const { return begins_; }

 private:
  void expect_type_of_buffer(const Parameter& parameter) const;

  Parameters parameters_;
  at::Tensor buffer_;
  std::vector<at::Tensor> views_;  // in the order of the list; undefined without a gradient
  std::vector<int64_t> begins_;
};

// A place in the tree of names: scope.child("blocks").child("0").add("weight", ...) makes "blocks.0.weight".
class Scope {
 public:
  explicit Scope(const Parameters& parameters) : store_(parameters.store_) {}
  Scope child(std::string_view name) const;
  // UsageError when the name is taken. `matrices`: Parameter::matrices.
  Slot add(std::string_view name, ParameterKind kind, at::IntArrayRef shape, const Init& init,
           std::vector<int64_t> matrices = {}) const;
  Slot add_buffer(std::string_view name, const at::Tensor& value) const;
  Parameters parameters() const { return Parameters(store_); }
  const std::string& name() const { return prefix_; }  // dotted; empty at the root

 private:
  std::shared_ptr<ParameterStore> store_;
  std::string prefix_;
};

// Writes single elements of a fresh parameter (a one-hot, a diagonal); does nothing to one that is not.
void set_initial(const Slot& slot, const std::function<void(at::Tensor value)>& write);

// Multiplies rows [begin, end) of a fresh weight: a scheme's init factor on one part of a fused projection.
void scale_rows(const Slot& weight, int64_t begin, int64_t end, double factor);

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
