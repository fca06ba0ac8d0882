#include "siamese/ops/linear.h"

#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "siamese/ops/library.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/one_thread.h"
#include "siamese/ops/partials.h"
#include "siamese/ops/pointers.h"
#include "siamese/ops/product.h"

namespace siamese::ops {

namespace plain {

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  std::vector<int64_t> shape = x.sizes().vec();
  shape.back() = weight.size(0);
  const at::Tensor y = product(x.reshape({-1, x.size(-1)}), weight.t()).view(shape);
  if (!bias.defined()) return y;
  return on_one_thread({y, bias}, [](const Tensors& given) { return given[0] + given[1]; });
}

}  // namespace plain

at::Tensor column_sums(const at::Tensor& rows) {
  const int64_t cols = rows.size(1);
  RowPartials partials(rows.size(0), cols, 1);
  const float* const data = rows.const_data_ptr<float>();
  partials.for_each([&](int64_t begin, int64_t end, float* const* sums) {
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t col = 0; col < cols; ++col) sums[0][col] += data[row * cols + col];
    }
  });
  return partials.total(0);
}

namespace {

class FusedLinear : public torch::autograd::Function<FusedLinear> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias) {
    const at::Tensor flat = x.reshape({-1, x.size(-1)});
    context->save_for_backward({flat, weight});
    context->saved_data["bias"] = bias.has_value() && bias->requires_grad();
    std::vector<int64_t> shape = x.sizes().vec();
    shape.back() = weight.size(0);
    const at::Tensor y = times_transposed(flat, weight).view(shape);
    return bias.has_value() ? y.add_(*bias) : y;
  }

  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* context,
                                               const torch::autograd::tensor_list& grads) {
    const auto saved = context->get_saved_variables();
    const at::Tensor& weight = saved[1];
    const at::Tensor dy = grads[0].reshape({-1, weight.size(0)});
    at::Tensor dx;
    if (context->needs_input_grad(0)) {
      std::vector<int64_t> shape = grads[0].sizes().vec();
      shape.back() = weight.size(1);
      dx = times(dy, weight).view(shape);
    }
    return {dx, context->needs_input_grad(1) ? weight_gradient(weight, dy, saved[0]) : at::Tensor(),
            context->saved_data["bias"].toBool() ? column_sums(dy.contiguous()) : at::Tensor()};
  }
};

}  // namespace

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  if (x.numel() == 0 || !use_fused("linear", {x, weight, bias})) return plain::linear(x, weight, bias);
  return FusedLinear::apply(x, weight, as_optional(bias));
}

}  // namespace siamese::ops
