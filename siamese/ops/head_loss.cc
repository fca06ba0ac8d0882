#include "siamese/ops/head_loss.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/custom_function.h>

#include "siamese/base/check.h"
#include "siamese/kernels/cross_entropy.h"
#include "siamese/ops/cross_entropy.h"
#include "siamese/ops/gradient.h"
#include "siamese/ops/library.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/pointers.h"
#include "siamese/ops/product.h"
#include "siamese/ops/reduce.h"
#include "siamese/ops/scope.h"

namespace siamese::ops {

namespace plain {

HeadLoss head_loss(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets,
                   const at::Tensor& weights, const HeadLossScales& scales) {
  const CrossEntropy terms = cross_entropy(product(hidden, weight.t()), targets, weights);
  const at::Tensor objective = terms.nll * scales.nll;
  return {scales.z == 0 ? objective : objective + terms.z * scales.z, terms.nll.detach(), terms.z.detach()};
}

}  // namespace plain

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

// A chunk's logits fill at most this many floats (32 MiB), and never less than a few rows: below, the gradient of a
// large head is rewritten too often for what is added to it.
constexpr int64_t kChunkFloats = int64_t{1} << 23;
constexpr int64_t kLeastRows = 64;

int64_t rows_of_chunk(int64_t rows, int64_t vocab) {
  const int64_t most = std::max(kLeastRows, kChunkFloats / vocab);
  const int64_t chunks = (rows + most - 1) / most;
  return (rows + chunks - 1) / chunks;
}

at::Tensor weighted_sum(const at::Tensor& rows, const at::Tensor& weights) {
  return fixed_sum(weights.defined() ? rows * weights : rows);
}

// The losses of a chunk of logits; with scales also the gradient, in the logits' place.
void chunk_losses(const at::Tensor& logits, const at::Tensor& targets, const at::Tensor& weights,
                  const at::Tensor& losses, const HeadLossScales* scales) {
  const PartScope scope("part::loss");
  const int64_t vocab = logits.size(1);
  const kernels::CrossEntropyRows rows{.logits = logits.mutable_data_ptr<float>(),
                                       .targets = targets.const_data_ptr<int64_t>(),
                                       .weights = data_or_null(weights),
                                       .nll = losses[0].mutable_data_ptr<float>(),
                                       .z = losses[1].mutable_data_ptr<float>(),
                                       .vocab = vocab};
  at::parallel_for(0, logits.size(0), std::max<int64_t>(1, 4096 / vocab), [&](int64_t begin, int64_t end) {
    if (scales != nullptr) {
      kernels::cross_entropy_with_gradient(rows, scales->nll, scales->z, begin, end);
    } else {
      kernels::cross_entropy(rows, begin, end);
    }
  });
}

// Returns objective, nll, z.
class FusedHeadLoss : public torch::autograd::Function<FusedHeadLoss> {
 public:
  static tensor_list forward(AutogradContext* context, const at::Tensor& given, const at::Tensor& weight,
                             const at::Tensor& targets, const std::optional<at::Tensor>& given_weights,
                             bool want_gradients, const HeadLossScales& scales) {
    const at::Tensor hidden = given.contiguous();
    const at::Tensor weights = given_weights.value_or(at::Tensor());
    const int64_t rows = hidden.size(0);
    const int64_t vocab = weight.size(0);
    const at::Tensor losses = at::empty({2, rows}, hidden.options());
    const bool in_place = want_gradients && adds_in_place(weight);
    at::Tensor dhidden, dweight;
    if (want_gradients) {
      dhidden = at::empty_like(hidden);
      if (weight.requires_grad()) dweight = in_place ? weight.grad() : at::zeros_like(weight);
    }
    const int64_t chunk = rows_of_chunk(rows, vocab);
    for (int64_t first = 0; first < rows; first += chunk) {
      const int64_t count = std::min(chunk, rows - first);
      const at::Tensor part = hidden.narrow(0, first, count);
      const at::Tensor logits = times_transposed(part, weight);
      chunk_losses(logits, targets.narrow(0, first, count),
                   weights.defined() ? weights.narrow(0, first, count) : weights, losses.narrow(1, first, count),
                   want_gradients ? &scales : nullptr);
      if (!want_gradients) continue;
      dhidden.narrow(0, first, count).copy_(times(logits, weight));
      if (dweight.defined()) add_weight_gradient(dweight, logits, part);
    }
    context->save_for_backward({dhidden, in_place ? at::Tensor() : dweight});
    context->saved_data["in_place"] = in_place;
    const at::Tensor nll_sum = weighted_sum(losses[0], weights);
    const at::Tensor z_sum = weighted_sum(losses[1], weights);
    const at::Tensor objective = nll_sum * scales.nll;
    context->mark_non_differentiable({nll_sum, z_sum});
    return {scales.z == 0 ? objective : objective + z_sum * scales.z, nll_sum, z_sum};
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const auto saved = context->get_saved_variables();
    const double outer = grads[0].item<double>();
    // What is in .grad already was made for a loss with gradient 1 (ops/gradient.h).
    SIAMESE_INVARIANT(outer == 1 || !context->saved_data["in_place"].toBool());
    const auto scaled = [&](const at::Tensor& gradient) {
      return outer == 1 || !gradient.defined() ? gradient : gradient * outer;
    };
    return {scaled(saved[0]), scaled(saved[1]), {}, {}, {}, {}};
  }
};

}  // namespace

void cross_entropy_in_place(const at::Tensor& logits, const at::Tensor& targets, const at::Tensor& weights,
                            const at::Tensor& losses, const HeadLossScales& scales) {
  chunk_losses(logits, targets, weights, losses, &scales);
}

HeadLoss head_loss(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets,
                   const at::Tensor& weights, const HeadLossScales& scales) {
  if (hidden.size(0) == 0 || !use_fused("head_loss", {hidden, weight, weights})) {
    return plain::head_loss(hidden, weight, targets, weights, scales);
  }
  const bool want_gradients = c10::GradMode::is_enabled() && (hidden.requires_grad() || weight.requires_grad());
  const auto results =
      FusedHeadLoss::apply(hidden, weight, targets.contiguous(),
                           as_optional(weights.defined() ? weights.contiguous() : weights), want_gradients, scales);
  return {results[0], results[1], results[2]};
}

}  // namespace siamese::ops
