#include "siamese/ops/norm.h"

#include <optional>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include "siamese/kernels/layer_norm.h"
#include "siamese/kernels/rms_norm.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/norm_step.h"
#include "siamese/ops/one_thread.h"
#include "siamese/ops/partials.h"
#include "siamese/ops/pointers.h"
#include "siamese/ops/scope.h"

namespace siamese::ops {

namespace plain {

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& gain, double eps) {
  const at::Tensor y = x * at::rsqrt(x.square().mean(-1, true) + eps);
  return gain.defined() ? y * gain : y;
}

at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& gain, const at::Tensor& bias, double eps) {
  const at::Tensor centred = x - x.mean(-1, true);
  at::Tensor y = centred * at::rsqrt(centred.square().mean(-1, true) + eps);
  if (gain.defined()) y = y * gain;
  return bias.defined() ? y + bias : y;
}

}  // namespace plain

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

// An absent gain or bias is no input of the autograd node; an undefined tensor may not be one.
std::optional<at::Tensor> if_defined(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

class RmsNorm : public torch::autograd::Function<RmsNorm> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input,
                            const std::optional<at::Tensor>& maybe_gain, double eps) {
    const at::Tensor x = input.contiguous();
    const at::Tensor gain = maybe_gain.value_or(at::Tensor());
    const int64_t cols = x.size(-1);
    const int64_t rows = x.numel() / cols;
    at::Tensor y = at::empty_like(x);
    const at::Tensor rstd = at::empty({rows}, x.options());
    const float* const gain_data = data_or_null(gain);
    at::parallel_for(0, rows, row_grain(cols), [&](int64_t begin, int64_t end) {
      kernels::rms_norm_forward(x.const_data_ptr<float>(), gain_data, static_cast<float>(eps),
                                y.mutable_data_ptr<float>(), rstd.mutable_data_ptr<float>(), begin, end, cols);
    });
    context->save_for_backward({x, gain, rstd});
    return y;
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const auto saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor& gain = saved[1];
    const at::Tensor& rstd = saved[2];
    const at::Tensor dy = grads[0].contiguous();
    const int64_t cols = x.size(-1);
    const bool want_gain = gain.defined() && context->needs_input_grad(1);
    at::Tensor dx = at::empty_like(x);
    RowPartials partials(x.numel() / cols, cols, want_gain ? 1 : 0);
    partials.for_each([&](int64_t begin, int64_t end, float* const* sums) {
      kernels::rms_norm_backward(dy.const_data_ptr<float>(), x.const_data_ptr<float>(), data_or_null(gain),
                                 rstd.const_data_ptr<float>(), dx.mutable_data_ptr<float>(), sums[0], begin, end, cols);
    });
    return {dx, want_gain ? partials.total(0) : at::Tensor(), at::Tensor()};
  }
};

class LayerNorm : public torch::autograd::Function<LayerNorm> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input,
                            const std::optional<at::Tensor>& maybe_gain, const std::optional<at::Tensor>& maybe_bias,
                            double eps) {
    const at::Tensor x = input.contiguous();
    const at::Tensor gain = maybe_gain.value_or(at::Tensor());
    const at::Tensor bias = maybe_bias.value_or(at::Tensor());
    const int64_t cols = x.size(-1);
    const int64_t rows = x.numel() / cols;
    at::Tensor y = at::empty_like(x);
    const at::Tensor mean = at::empty({rows}, x.options());
    const at::Tensor rstd = at::empty({rows}, x.options());
    const float* const gain_data = data_or_null(gain);
    const float* const bias_data = data_or_null(bias);
    at::parallel_for(0, rows, row_grain(cols), [&](int64_t begin, int64_t end) {
      kernels::layer_norm_forward(x.const_data_ptr<float>(), gain_data, bias_data, static_cast<float>(eps),
                                  y.mutable_data_ptr<float>(), mean.mutable_data_ptr<float>(),
                                  rstd.mutable_data_ptr<float>(), begin, end, cols);
    });
    context->save_for_backward({x, gain, mean, rstd});
    context->saved_data["has_bias"] = bias.defined();
    return y;
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const auto saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor& gain = saved[1];
    const at::Tensor& mean = saved[2];
    const at::Tensor& rstd = saved[3];
    const at::Tensor dy = grads[0].contiguous();
    const int64_t cols = x.size(-1);
    const bool want_gain = gain.defined() && context->needs_input_grad(1);
    const bool want_bias =
        context->saved_data["has_bias"].toBool() && context->needs_input_grad(gain.defined() ? 2 : 1);
    at::Tensor dx = at::empty_like(x);
    RowPartials partials(x.numel() / cols, cols, 2);
    partials.for_each([&](int64_t begin, int64_t end, float* const* sums) {
      kernels::layer_norm_backward(dy.const_data_ptr<float>(), x.const_data_ptr<float>(), data_or_null(gain),
                                   mean.const_data_ptr<float>(), rstd.const_data_ptr<float>(),
                                   dx.mutable_data_ptr<float>(), want_gain ? sums[0] : nullptr,
                                   want_bias ? sums[1] : nullptr, begin, end, cols);
    });
    return {dx, want_gain ? partials.total(0) : at::Tensor(), want_bias ? partials.total(1) : at::Tensor(),
            at::Tensor()};
  }
};

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& gain, double eps) {
  const PartScope scope("siamese::norm");
  if (!use_fused("rms_norm", {x, gain})) {
    return on_one_thread({x, gain}, [&](const Tensors& given) { return plain::rms_norm(given[0], given[1], eps); });
  }
  return RmsNorm::apply(x, if_defined(gain), eps);
}

at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& gain, const at::Tensor& bias, double eps) {
  const PartScope scope("siamese::norm");
  if (!use_fused("layer_norm", {x, gain, bias})) {
    return on_one_thread({x, gain, bias},
                         [&](const Tensors& given) { return plain::layer_norm(given[0], given[1], given[2], eps); });
  }
  return LayerNorm::apply(x, if_defined(gain), if_defined(bias), eps);
}

at::Tensor apply(const NormStep& norm, const at::Tensor& x) {
  if (!norm.present) return x;
  return norm.layer ? layer_norm(x, norm.gain, norm.bias, norm.eps) : rms_norm(x, norm.gain, norm.eps);
}

}  // namespace siamese::ops
