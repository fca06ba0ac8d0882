#include <map>
#include <memory>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/autograd.h>

#include "siamese/cli/bench.h"
#include "siamese/ops/activation.h"
#include "siamese/ops/adamw.h"
#include "siamese/ops/cached_attention.h"
#include "siamese/ops/depth_attend.h"
#include "siamese/ops/head_loss.h"
#include "siamese/ops/junction.h"
#include "siamese/ops/linear.h"
#include "siamese/ops/modulate.h"
#include "siamese/ops/norm.h"
#include "siamese/ops/pointwise_norm.h"
#include "siamese/ops/reduce.h"
#include "siamese/ops/rope.h"
#include "siamese/ops/stream_attend.h"

namespace siamese::cli {
namespace kernel_cases_of {

using Tensors = std::vector<at::Tensor>;

// The least an operation can move, in arrays.
struct Traffic {
  int reads;
  int writes;
};

// An operation with a gradient: two cases.
struct Operation {
  std::string name;
  Traffic forward;
  Traffic backward;
  Tensors inputs;                  // that get gradients
  std::function<Tensors()> apply;  // -> the outputs gradients come to
};

struct Shape {
  int64_t rows;
  int64_t cols;
  int64_t elements() const { return rows * cols; }
};

at::Tensor leaf(at::IntArrayRef shape) { return at::randn(shape).requires_grad_(); }

KernelCase forward_case(const Operation& operation, int64_t elements) {
  const auto outputs = std::make_shared<Tensors>();
  return {.name = operation.name,
          .pass = "forward",
          .reads = operation.forward.reads,
          .writes = operation.forward.writes,
          .elements = elements,
          .prepare = [outputs] { outputs->clear(); },
          .run = [outputs, apply = operation.apply] { *outputs = apply(); }};
}

KernelCase backward_case(const Operation& operation, int64_t elements) {
  struct State {
    Tensors outputs;
    Tensors incoming;
    Tensors gradients;
  };
  const auto state = std::make_shared<State>();
  for (const auto& output : operation.apply()) state->incoming.push_back(at::ones_like(output));
  return {.name = operation.name,
          .pass = "backward",
          .reads = operation.backward.reads,
          .writes = operation.backward.writes,
          .elements = elements,
          .prepare =
              [state, apply = operation.apply] {
                state->gradients.clear();
                state->outputs = apply();
              },
          .run =
              [state, inputs = operation.inputs] {
                state->gradients = torch::autograd::grad(state->outputs, inputs, state->incoming,
                                                         /*retain_graph=*/true, /*create_graph=*/false);
              }};
}

// --- junctions: the pending branch added, the streams' norms, the merge, the norm of the branch input -------------

ops::NormStep norm_of(Tensors& inputs, int64_t cols) {
  inputs.push_back(leaf({cols}));
  return {.present = true, .layer = false, .gain = inputs.back(), .bias = {}, .eps = 1e-5};
}

Operation junction(const std::string& name, Traffic forward, Traffic backward, const Tensors& inputs,
                   const ops::Junction& pass) {
  return {name, forward, backward, inputs, [pass] {
            const ops::JunctionResult made = ops::junction(pass);
            Tensors outputs = {made.input};
            const bool writer = pass.y_skip != 1;  // post: the norm's output is the new stream
            if (!writer) outputs.push_back(made.y);
            if (pass.x.defined()) outputs.push_back(made.x);
            return outputs;
          }};
}

ops::Junction one_stream(Tensors& inputs, const Shape& shape) {
  ops::Junction pass;
  inputs = {leaf({shape.rows, shape.cols}), leaf({shape.rows, shape.cols})};
  pass.branch = inputs[0];
  pass.y = inputs[1];
  pass.y_branch = 1;
  pass.y_norm = norm_of(inputs, shape.cols);
  return pass;
}

ops::Junction two_streams(Tensors& inputs, const Shape& shape) {
  ops::Junction pass = one_stream(inputs, shape);
  inputs.push_back(leaf({shape.rows, shape.cols}));
  pass.x = inputs.back();
  pass.x_branch = 0.5;
  return pass;
}

Operation pre(const Shape& shape) {
  Tensors inputs;
  const ops::Junction pass = one_stream(inputs, shape);
  return junction("junction pre", {2, 2}, {3, 1}, inputs, pass);
}

Operation post(const Shape& shape) {
  Tensors inputs;
  ops::Junction pass = one_stream(inputs, shape);
  pass.y_skip = 1.5;
  return junction("junction post, deepnorm", {2, 2}, {2, 2}, inputs, pass);
}

Operation peri(const Shape& shape) {
  Tensors inputs;
  ops::Junction pass = one_stream(inputs, shape);
  pass.branch_norm = norm_of(inputs, shape.cols);
  return junction("junction peri, sandwich", {2, 2}, {4, 2}, inputs, pass);
}

// dit: rows of samples, each with a gate.
constexpr int64_t kGatedRows = 64;

Shape whole_samples(const Shape& shape) {
  return {std::max<int64_t>(1, shape.rows / kGatedRows) * kGatedRows, shape.cols};
}

Operation gated(const Shape& shape) {
  const int64_t samples = shape.rows / kGatedRows;
  Tensors inputs;
  ops::Junction pass = one_stream(inputs, shape);
  pass.branch = pass.branch.view({samples, kGatedRows, shape.cols});
  pass.y = pass.y.view({samples, kGatedRows, shape.cols});
  inputs.push_back(leaf({samples, shape.cols}));
  pass.gate = inputs.back();
  return junction("junction pre, gated", {2, 2}, {4, 2}, inputs, pass);
}

Operation siamese_post(const Shape& shape) {
  Tensors inputs;
  ops::Junction pass = two_streams(inputs, shape);
  pass.x_norm = norm_of(inputs, shape.cols);
  pass.input_norm = norm_of(inputs, shape.cols);
  return junction("junction siamese, x=hybrid ffn", {3, 4}, {5, 3}, inputs, pass);
}

Operation siamese_hybrid(const Shape& shape) {
  Tensors inputs;
  ops::Junction pass = two_streams(inputs, shape);
  inputs.push_back(leaf({shape.cols}));
  pass.x_scale = inputs.back();
  return junction("junction x=hybrid attention", {3, 3}, {5, 3}, inputs, pass);
}

// A read of attn_res in its block form, early in the model: two sources, the last of them with a
// branch. More would be more arrays than the loop beside it streams (measure/peaks.h).
Operation stream_attend(const Shape& shape) {
  constexpr int kSources = 2;
  Tensors inputs;
  for (int j = 0; j < kSources + 1; ++j) inputs.push_back(leaf({shape.rows, shape.cols}));
  inputs.push_back(leaf({shape.cols}));
  const at::Tensor query = inputs.back();
  const ops::NormStep norm = norm_of(inputs, shape.cols);
  const auto apply = [inputs, query, norm] {
    const ops::StreamAttended made =
        ops::stream_attend({inputs.begin(), inputs.begin() + kSources}, inputs[kSources], query, 1e-5, norm);
    Tensors outputs = {made.input};
    outputs.insert(outputs.end(), made.streams.begin(), made.streams.end());
    return outputs;
  };
  return {"stream_attend, two sources", {kSources + 1, 2}, {2 * kSources + 1, kSources}, inputs, apply};
}

// A block that attends to one other, in heads of 64 without groups; expressions, not a kernel. The keys are held fixed:
// gradients of all would be more arrays than the loop beside it writes.
Operation depth_attend(const Shape& shape) {
  constexpr int64_t kHeadDim = 64;
  const int64_t heads = std::max<int64_t>(1, shape.cols / kHeadDim);
  const std::vector<int64_t> sizes = {std::max<int64_t>(1, shape.elements() / (heads * kHeadDim)), heads, kHeadDim};
  const Tensors inputs = {leaf(sizes), leaf(sizes), leaf(sizes)};
  const Tensors keys = {at::randn(sizes), at::randn(sizes)};
  const auto apply = [inputs, keys] { return Tensors{ops::depth_attend(inputs[0], keys, {inputs[1], inputs[2]})}; };
  return {"depth_attend, two sources", {5, 1}, {6, 3}, inputs, apply};
}

// --- single passes -------------------------------------------------------------------------------------------------

Operation rms_norm(const Shape& shape) {
  const Tensors inputs = {leaf({shape.rows, shape.cols}), leaf({shape.cols})};
  return {"rms_norm", {1, 1}, {2, 1}, inputs, [inputs] { return Tensors{ops::rms_norm(inputs[0], inputs[1], 1e-5)}; }};
}

Operation layer_norm(const Shape& shape) {
  const Tensors inputs = {leaf({shape.rows, shape.cols}), leaf({shape.cols}), leaf({shape.cols})};
  return {"layer_norm", {1, 1}, {2, 1}, inputs, [inputs] {
            return Tensors{ops::layer_norm(inputs[0], inputs[1], inputs[2], 1e-5)};
          }};
}

Operation derf(const Shape& shape) {
  const Tensors inputs = {leaf({shape.rows, shape.cols}), leaf({1}), leaf({1}), leaf({shape.cols}), leaf({shape.cols})};
  return {"derf", {1, 1}, {2, 1}, inputs, [inputs] {
            return Tensors{ops::pointwise_norm(ops::PointwiseFunction::erf, inputs[0], inputs[1], inputs[2], inputs[3],
                                               inputs[4])};
          }};
}

Operation swiglu(const Shape& shape) {
  const Tensors inputs = {leaf({shape.rows, 2 * shape.cols})};
  return {"swiglu", {2, 1}, {3, 2}, inputs, [inputs] {
            return Tensors{ops::activation(ops::Activation::swiglu, inputs[0])};
          }};
}

Operation gelu(const Shape& shape) {
  const Tensors inputs = {leaf({shape.rows, shape.cols})};
  return {
      "gelu", {1, 1}, {2, 1}, inputs, [inputs] { return Tensors{ops::activation(ops::Activation::gelu, inputs[0])}; }};
}

Operation rope(const Shape& shape) {
  constexpr int64_t kHeadDim = 64;
  constexpr int64_t kTokens = 256;
  const int64_t heads = std::max<int64_t>(1, shape.cols / kHeadDim);
  const int64_t batch = std::max<int64_t>(1, shape.elements() / (kTokens * heads * kHeadDim));
  const Tensors inputs = {leaf({batch, kTokens, heads, kHeadDim})};
  const at::Tensor cos = at::rand({kTokens, 1, kHeadDim / 2});
  const at::Tensor sin = at::rand({kTokens, 1, kHeadDim / 2});
  return {"rope", {1, 1}, {1, 1}, inputs, [inputs, cos, sin] { return Tensors{ops::rope(inputs[0], cos, sin)}; }};
}

Operation modulate(const Shape& shape) {
  constexpr int64_t kTokens = 64;
  const int64_t batch = std::max<int64_t>(1, shape.rows / kTokens);
  const Tensors inputs = {leaf({batch, kTokens, shape.cols}), leaf({batch, shape.cols}), leaf({batch, shape.cols})};
  return {
      "modulate", {1, 1}, {2, 1}, inputs, [inputs] { return Tensors{ops::modulate(inputs[0], inputs[1], inputs[2])}; }};
}

// Losses and the gradient in place of the logits, as head_loss does it chunk by chunk.
KernelCase loss(const Shape& shape) {
  constexpr int64_t kVocab = 4096;
  const int64_t rows = std::max<int64_t>(1, shape.elements() / kVocab);
  const at::Tensor logits = at::randn({rows, kVocab});
  const at::Tensor targets = at::randint(kVocab, {rows}, at::kLong);
  const at::Tensor losses = at::empty({2, rows});
  return {.name = "cross_entropy",
          .pass = "with gradient",
          .reads = 1,
          .writes = 1,
          .in_place = 1,
          .elements = rows * kVocab,
          .prepare = [] {},
          .run =
              [logits, targets, losses] {
                const ops::LossScales scales;
                ops::cross_entropy_rows(logits, targets, {}, losses, &scales);
              }};
}

KernelCase adamw(const Shape& shape) {
  const int64_t elements = shape.elements();
  const Tensors state = {at::randn({elements}), at::randn({elements}), at::zeros({elements}), at::zeros({elements})};
  return {.name = "adamw",
          .pass = "update",
          .reads = 4,
          .writes = 3,
          .in_place = 3,
          .elements = elements,
          .prepare = [] {},
          .run =
              [state] {
                ops::adamw_step({.lr = 1e-3, .applied_steps = 10}, {{state[0], state[1], state[2], state[3], 0.1}});
              }};
}

KernelCase gradient_norm(const Shape& shape) {
  const at::Tensor gradient = at::randn({shape.elements()});
  return {.name = "gradient norm",
          .pass = "forward",
          .reads = 1,
          .writes = 0,
          .elements = shape.elements(),
          .prepare = [] {},
          .run = [gradient] { ops::sum_squares(gradient); }};
}

// Generation: one row times a matrix, which is what has to be read: as many bytes in bfloat16, of twice the rows.
KernelCase row_product(const Shape& shape, at::ScalarType type) {
  const bool half = type == at::kBFloat16;
  const at::Tensor x = at::randn({1, shape.cols}).to(type);
  const at::Tensor weight = at::randn({half ? 2 * shape.rows : shape.rows, shape.cols}).to(type);
  return {.name = half ? "row times matrix, bfloat16" : "row times matrix",
          .pass = "forward",
          .reads = 1,
          .writes = 0,
          .elements = shape.elements(),
          .prepare = [] {},
          .run =
              [x, weight] {
                const c10::InferenceMode inference;
                ops::linear(x, weight, {});
              }};
}

// Generation: one token and the keys and values of all before it, in eight heads.
KernelCase cached_attention(const Shape& shape) {
  constexpr int64_t kHeads = 8;
  const int64_t dim = std::max<int64_t>(1, shape.cols / kHeads);
  const at::Tensor qkv = at::randn({1, 1, 3 * kHeads * dim});
  const at::Tensor keys = at::randn({1, kHeads, shape.rows, dim});
  const at::Tensor values = at::randn({1, kHeads, shape.rows, dim});
  return {.name = "cached attention",
          .pass = "forward",
          .reads = 2,
          .writes = 0,
          .elements = keys.numel(),
          .prepare = [] {},
          .run =
              [qkv, keys, values] {
                const at::AutoDispatchBelowAutograd below;
                ops::cached_attention(qkv, {.heads = kHeads, .kv_heads = kHeads}, keys, values, {keys.size(2) - 1});
              }};
}

}  // namespace kernel_cases_of

std::vector<std::function<KernelCase()>> kernel_cases(int64_t rows, int64_t cols) {
  namespace of = kernel_cases_of;
  const of::Shape shape{rows, cols};
  std::vector<std::function<KernelCase()>> cases;
  for (auto* const make : {&of::pre, &of::siamese_post, &of::siamese_hybrid, &of::post, &of::peri, &of::gated,
                           &of::stream_attend, &of::depth_attend, &of::rms_norm, &of::layer_norm, &of::derf,
                           &of::swiglu, &of::gelu, &of::rope, &of::modulate}) {
    const of::Shape whole = make == &of::gated ? of::whole_samples(shape) : shape;
    cases.push_back([make, whole] { return of::forward_case(make(whole), whole.elements()); });
    cases.push_back([make, whole] { return of::backward_case(make(whole), whole.elements()); });
  }
  cases.push_back([shape] { return of::loss(shape); });
  cases.push_back([shape] { return of::adamw(shape); });
  cases.push_back([shape] { return of::gradient_norm(shape); });
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    cases.push_back([shape, type] { return of::row_product(shape, type); });
  }
  cases.push_back([shape] { return of::cached_attention(shape); });
  return cases;
}

}  // namespace siamese::cli
