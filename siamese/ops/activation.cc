#include "siamese/ops/activation.h"

#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include "siamese/base/check.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/one_thread.h"
#include "siamese/ops/partials.h"
#include "siamese/ops/scope.h"

namespace siamese::ops {

namespace plain {

at::Tensor activation(Activation kind, const at::Tensor& x) {
  if (kind != Activation::swiglu) return at::gelu(x, kind == Activation::gelu ? "none" : "tanh");
  const auto halves = x.chunk(2, -1);
  return at::silu(halves[1]) * halves[0];
}

}  // namespace plain

Activation activation_named(const char* op, std::string_view kind) {
  if (const auto found = enum_from_text<Activation>(kind); found.has_value()) return *found;
  std::string choices;
  for (const auto& choice : enum_choices<Activation>()) choices += (choices.empty() ? "" : " | ") + choice;
  throw UsageError("siamese::" + std::string(op) + ": kind: expected " + choices + ", got " + std::string(kind));
}

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

int64_t width_of(Activation kind, const at::Tensor& x) { return x.size(-1) / (kind == Activation::swiglu ? 2 : 1); }

class FusedActivation : public torch::autograd::Function<FusedActivation> {
 public:
  static at::Tensor forward(AutogradContext* context, Activation kind, const at::Tensor& input) {
    const at::Tensor x = input.contiguous();
    const int64_t cols = width_of(kind, x);
    std::vector<int64_t> shape = x.sizes().vec();
    shape.back() = cols;
    at::Tensor y = at::empty(shape, x.options());
    at::parallel_for(0, y.numel() / cols, row_grain(cols), [&](int64_t begin, int64_t end) {
      kernels::activation_forward(kind, x.const_data_ptr<float>(), y.mutable_data_ptr<float>(), begin, end, cols);
    });
    context->save_for_backward({x});
    context->saved_data["kind"] = static_cast<int64_t>(kind);
    return y;
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const at::Tensor x = context->get_saved_variables()[0];
    const auto kind = static_cast<Activation>(context->saved_data["kind"].toInt());
    const at::Tensor dy = grads[0].contiguous();
    const int64_t cols = width_of(kind, x);
    at::Tensor dx = at::empty_like(x);
    at::parallel_for(0, dy.numel() / cols, row_grain(cols), [&](int64_t begin, int64_t end) {
      kernels::activation_backward(kind, x.const_data_ptr<float>(), dy.const_data_ptr<float>(),
                                   dx.mutable_data_ptr<float>(), nullptr, begin, end, cols);
    });
    return {at::Tensor(), dx};
  }
};

}  // namespace

at::Tensor silu(const at::Tensor& x) {
  return on_one_thread({x}, [](const Tensors& given) { return at::silu(given[0]); });
}

at::Tensor sigmoid(const at::Tensor& x) {
  return on_one_thread({x}, [](const Tensors& given) { return at::sigmoid(given[0]); });
}

at::Tensor activation(Activation kind, const at::Tensor& x) {
  const PartScope scope("part::activation");
  if (!use_fused("activation", {x})) {
    return on_one_thread({x}, [&](const Tensors& given) { return plain::activation(kind, given[0]); });
  }
  return FusedActivation::apply(kind, x);
}

}  // namespace siamese::ops
