#include "siamese/ops/modulate.h"

#include <algorithm>
#include <optional>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include "siamese/base/check.h"
#include "siamese/kernels/modulate.h"
#include "siamese/ops/library.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/one_thread.h"
#include "siamese/ops/partials.h"
#include "siamese/ops/pointers.h"
#include "siamese/ops/scope.h"

namespace siamese::ops {

namespace plain {

at::Tensor modulate(const at::Tensor& x, const at::Tensor& shift, const at::Tensor& scale) {
  return x * (1 + scale.unsqueeze(1)) + shift.unsqueeze(1);
}

at::Tensor gate(const at::Tensor& x, const at::Tensor& gate) { return x * gate.unsqueeze(1); }

}  // namespace plain

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

constexpr int64_t kTaskColumns = 256;  // of one sample in backward: a sum's bits do not depend on it

// The kernel reads rows at any stride; only elements of a row must be neighbours.
at::Tensor with_dense_rows(const at::Tensor& x) { return x.stride(1) == 1 ? x : x.contiguous(); }

// Without a shift: a gate.
kernels::Modulation modulation(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& shift) {
  kernels::Modulation by{.tokens = x.size(1),
                         .cols = x.size(2),
                         .one = shift.defined() ? 1.0F : 0.0F,
                         .scale = scale.const_data_ptr<float>(),
                         .scale_stride = scale.stride(0)};
  if (!shift.defined()) return by;
  by.shift = shift.const_data_ptr<float>();
  by.shift_stride = shift.stride(0);
  return by;
}

class FusedModulate : public torch::autograd::Function<FusedModulate> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, const at::Tensor& given_scale,
                            const std::optional<at::Tensor>& given_shift) {
    const at::Tensor x = input.contiguous();
    const at::Tensor scale = with_dense_rows(given_scale);
    const at::Tensor shift = given_shift.has_value() ? with_dense_rows(*given_shift) : at::Tensor();
    const kernels::Modulation by = modulation(x, scale, shift);
    at::Tensor y = at::empty_like(x);
    at::parallel_for(0, x.size(0) * by.tokens, row_grain(by.cols), [&](int64_t begin, int64_t end) {
      kernels::modulate_forward(by, x.const_data_ptr<float>(), y.mutable_data_ptr<float>(), begin, end);
    });
    context->save_for_backward({x, scale});
    context->saved_data["has_shift"] = shift.defined();
    return y;
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const auto saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor& scale = saved[1];
    const at::Tensor dy = grads[0].contiguous();
    const at::Tensor dx = at::empty_like(x);
    const at::Tensor dscale = at::empty({x.size(0), x.size(2)}, x.options());
    at::Tensor dshift;
    if (context->saved_data["has_shift"].toBool()) dshift = at::empty_like(dscale);
    kernels::Modulation by = modulation(x, scale, {});
    if (dshift.defined()) by.one = 1;
    const int64_t blocks = (by.cols + kTaskColumns - 1) / kTaskColumns;
    at::parallel_for(0, x.size(0) * blocks, 1, [&](int64_t first, int64_t last) {
      for (int64_t task = first; task < last; ++task) {
        const int64_t begin = task % blocks * kTaskColumns;
        kernels::modulate_backward(by, dy.const_data_ptr<float>(), x.const_data_ptr<float>(),
                                   dx.mutable_data_ptr<float>(), dscale.mutable_data_ptr<float>(),
                                   writable_or_null(dshift), task / blocks, begin,
                                   std::min(by.cols, begin + kTaskColumns));
      }
    });
    return {dx, dscale, dshift};
  }
};

void check_shapes(const at::Tensor& x, const at::Tensor& by) {
  SIAMESE_INVARIANT(x.dim() == 3 && by.dim() == 2 && by.size(0) == x.size(0) && by.size(1) == x.size(2));
}

}  // namespace

at::Tensor modulate(const at::Tensor& x, const at::Tensor& shift, const at::Tensor& scale) {
  const PartScope scope("part::modulate");
  check_shapes(x, shift);
  check_shapes(x, scale);
  if (x.numel() == 0 || !use_fused("modulate", {x, shift, scale})) {
    return on_one_thread({x, shift, scale},
                         [](const Tensors& given) { return plain::modulate(given[0], given[1], given[2]); });
  }
  return FusedModulate::apply(x, scale, as_optional(shift));
}

at::Tensor gate(const at::Tensor& x, const at::Tensor& gate) {
  const PartScope scope("part::modulate");
  check_shapes(x, gate);
  if (x.numel() == 0 || !use_fused("gate", {x, gate})) {
    return on_one_thread({x, gate}, [](const Tensors& given) { return plain::gate(given[0], given[1]); });
  }
  return FusedModulate::apply(x, gate, as_optional(at::Tensor()));
}

}  // namespace siamese::ops
