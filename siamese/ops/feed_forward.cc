#include "siamese/ops/feed_forward.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include "siamese/base/check.h"
#include "siamese/ops/library.h"
#include "siamese/ops/linear.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/one_thread.h"
#include "siamese/ops/partials.h"
#include "siamese/ops/pointers.h"
#include "siamese/ops/product.h"
#include "siamese/ops/scope.h"

namespace siamese::ops {

namespace plain {

at::Tensor feed_forward(Activation kind, const at::Tensor& x, const FeedForwardWeights& weights) {
  const at::Tensor projected = linear(x, weights.w_in, weights.b_in);
  const at::Tensor active =
      on_one_thread({projected}, [&](const Tensors& given) { return activation(kind, given[0]); });
  return linear(active, weights.w_out, weights.b_out);
}

}  // namespace plain

namespace {

void activate(Activation kind, const at::Tensor& projected, const at::Tensor& active) {
  const PartScope scope("part::activation");
  const int64_t hidden = active.size(1);
  at::parallel_for(0, active.size(0), row_grain(hidden), [&](int64_t begin, int64_t end) {
    kernels::activation_forward(kind, projected.const_data_ptr<float>(), active.mutable_data_ptr<float>(), begin, end,
                                hidden);
  });
}

// From the gradient of the activation's output, in `active`: the gradient of the projection, and in the place of that
// gradient the activation's output once more.
void activate_backward(Activation kind, const at::Tensor& projected, const at::Tensor& active,
                       const at::Tensor& dprojected) {
  const PartScope scope("part::activation");
  const int64_t hidden = active.size(1);
  at::parallel_for(0, active.size(0), row_grain(hidden), [&](int64_t begin, int64_t end) {
    float* const value = active.mutable_data_ptr<float>();
    kernels::activation_backward(kind, projected.const_data_ptr<float>(), value, dprojected.mutable_data_ptr<float>(),
                                 value, begin, end, hidden);
  });
}

class FusedFeedForward : public torch::autograd::Function<FusedFeedForward> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, Activation kind, const at::Tensor& x,
                            const at::Tensor& w_in, const std::optional<at::Tensor>& b_in, const at::Tensor& w_out,
                            const std::optional<at::Tensor>& b_out) {
    const at::Tensor flat = x.reshape({-1, x.size(-1)});
    at::Tensor projected = times_transposed(flat, w_in);
    if (b_in.has_value()) projected.add_(*b_in);
    const at::Tensor active = at::empty({flat.size(0), w_out.size(1)}, x.options());
    activate(kind, projected, active);
    context->save_for_backward({flat, projected, w_in, w_out});
    context->saved_data["kind"] = static_cast<int64_t>(kind);
    context->saved_data["biases"] = b_in.has_value();
    const at::Tensor y = times_transposed(active, w_out).view(x.sizes());
    return b_out.has_value() ? y.add_(*b_out) : y;
  }

  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* context,
                                               const torch::autograd::tensor_list& grads) {
    const auto saved = context->get_saved_variables();
    const at::Tensor& flat = saved[0];
    const at::Tensor& projected = saved[1];
    const at::Tensor& w_in = saved[2];
    const at::Tensor& w_out = saved[3];
    const auto kind = static_cast<Activation>(context->saved_data["kind"].toInt());
    const at::Tensor dy = grads[0].reshape({-1, w_out.size(0)}).contiguous();
    const bool biases = context->saved_data["biases"].toBool();  // an absent tensor has no place among the edges
    // The gradient of the activation's output, which a row's activation then overwrites.
    at::Tensor active = times(dy, w_out);
    at::Tensor dprojected = at::empty_like(projected);
    activate_backward(kind, projected, active, dprojected);
    const at::Tensor dw_out =
        context->needs_input_grad(biases ? 3 : 2) ? weight_gradient(w_out, dy, active) : at::Tensor();
    active.reset();
    const at::Tensor db_out = biases ? column_sums(dy) : at::Tensor();
    const at::Tensor dw_in = context->needs_input_grad(1) ? weight_gradient(w_in, dprojected, flat) : at::Tensor();
    const at::Tensor db_in = biases ? column_sums(dprojected) : at::Tensor();
    const at::Tensor dx = context->needs_input_grad(0) ? times(dprojected, w_in).view(grads[0].sizes()) : at::Tensor();
    return {at::Tensor(), dx, dw_in, db_in, dw_out, db_out};
  }
};

}  // namespace

at::Tensor feed_forward(Activation kind, const at::Tensor& x, const FeedForwardWeights& weights) {
  SIAMESE_INVARIANT(weights.b_in.defined() == weights.b_out.defined());
  if (x.numel() == 0 || !use_fused("feed_forward", {x, weights.w_in, weights.b_in, weights.w_out, weights.b_out})) {
    return plain::feed_forward(kind, x, weights);
  }
  return FusedFeedForward::apply(kind, x, weights.w_in, as_optional(weights.b_in), weights.w_out,
                                 as_optional(weights.b_out));
}

}  // namespace siamese::ops
