#include "siamese/ops/pointwise_norm.h"

#include <array>
#include <tuple>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "siamese/ops/arguments.h"
#include "siamese/ops/library.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/partials.h"
#include "siamese/ops/plain_gradient.h"
#include "siamese/ops/pointers.h"
#include "siamese/ops/scope.h"
#include "siamese/ops/wide.h"

namespace siamese::ops {

namespace plain {

// In float at least, rounded once.
at::Tensor pointwise_norm(PointwiseFunction function, const at::Tensor& x, const at::Tensor& alpha,
                          const at::Tensor& shift, const at::Tensor& gain, const at::Tensor& bias) {
  at::Tensor u = wide(x) * alpha;
  if (shift.defined()) u = u + shift;
  at::Tensor y = function == PointwiseFunction::tanh ? at::tanh(u) : at::erf(u);
  if (gain.defined()) y = y * gain;
  return (bias.defined() ? y + bias : y).to(x.scalar_type());
}

}  // namespace plain

namespace pointwise_norm_op {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;
using Given = const std::optional<at::Tensor>&;
using Made =
    std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>;  // dx, dalpha, dshift, dgain, dbias
using Wanted = std::array<bool, 5>;

PointwiseFunction function_of(bool erf) { return erf ? PointwiseFunction::erf : PointwiseFunction::tanh; }

void check(const char* op, const at::Tensor& x, const at::Tensor& alpha, Given shift, Given gain, Given bias) {
  Arguments arguments(op, "x", x);
  arguments.least_rank("x", x, 1);
  const c10::SymInt cols = x.sym_size(-1);
  if (cols == 0) arguments.require(false, "x", "rows of at least one number", "shape " + shape_text(x.sym_sizes()));
  const c10::SymInt one = 1;
  arguments.shape("alpha", alpha, {one}).shape("shift", or_undefined(shift), {one});
  arguments.shape("gain", or_undefined(gain), {cols}).shape("bias", or_undefined(bias), {cols});
}

void check_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& alpha, Given shift, Given gain) {
  check("pointwise_norm_backward", x, alpha, shift, gain, {});
  Arguments("pointwise_norm_backward", "x", x).shape("dy", dy, x.sym_sizes());
}

at::Tensor dense(Given tensor) { return tensor.has_value() ? tensor->contiguous() : at::Tensor(); }

kernels::PointwiseNorm norm_of(bool erf, const at::Tensor& alpha, Given shift, const at::Tensor& gain,
                               const at::Tensor& bias) {
  return {function_of(erf), *alpha.const_data_ptr<float>(), shift.has_value() ? *shift->const_data_ptr<float>() : 0.0F,
          data_or_null(gain), data_or_null(bias)};
}

at::Tensor plain_forward(const at::Tensor& x, const at::Tensor& alpha, Given shift, Given gain, Given bias, bool erf) {
  check("pointwise_norm", x, alpha, shift, gain, bias);
  const OneThread one_thread;
  return plain::pointwise_norm(function_of(erf), x, alpha, or_undefined(shift), or_undefined(gain), or_undefined(bias))
      .contiguous();
}

at::Tensor fused_forward(const at::Tensor& given, const at::Tensor& alpha, Given shift, Given given_gain,
                         Given given_bias, bool erf) {
  check("pointwise_norm", given, alpha, shift, given_gain, given_bias);
  if (!use_fused("pointwise_norm", {given})) return plain_forward(given, alpha, shift, given_gain, given_bias, erf);
  const at::Tensor x = given.contiguous();
  const at::Tensor gain = dense(given_gain), bias = dense(given_bias);
  const kernels::PointwiseNorm norm = norm_of(erf, alpha, shift, gain, bias);
  const int64_t cols = x.size(-1);
  at::Tensor y = at::empty_like(x);
  at::parallel_for(0, x.numel() / cols, row_grain(cols), [&](int64_t begin, int64_t end) {
    kernels::pointwise_norm_forward(norm, x.const_data_ptr<float>(), y.mutable_data_ptr<float>(), begin, end, cols);
  });
  return y;
}

at::Tensor meta_forward(const at::Tensor& x, const at::Tensor& alpha, Given shift, Given gain, Given bias, bool) {
  check("pointwise_norm", x, alpha, shift, gain, bias);
  return empty_dense(x);
}

Made plain_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& alpha, Given shift, Given gain,
                    bool erf, Wanted wanted) {
  // A bias is no part of any other gradient.
  const at::Tensor bias = wanted[4] ? at::zeros_symint({x.sym_size(-1)}, x.options()) : at::Tensor();
  const Tensors made = gradients_of(
      {x, alpha, or_undefined(shift), or_undefined(gain), bias}, std::vector<bool>(wanted.begin(), wanted.end()), {dy},
      [&](const Tensors& t) { return Tensors{plain::pointwise_norm(function_of(erf), t[0], t[1], t[2], t[3], t[4])}; });
  return {made[0], made[1], made[2], made[3], made[4]};
}

// [1]: the sum over the columns, in their order.
at::Tensor over_columns(const at::Tensor& sums) {
  double total = 0;
  for (int64_t i = 0; i < sums.numel(); ++i) total += static_cast<double>(sums.const_data_ptr<float>()[i]);
  return at::full({1}, total, sums.options());
}

Made fused_backward(const at::Tensor& given_dy, const at::Tensor& given, const at::Tensor& alpha, Given shift,
                    Given given_gain, bool erf, Wanted wanted) {
  check_backward(given_dy, given, alpha, shift, given_gain);
  if (!use_fused("pointwise_norm", {given})) {
    return plain_backward(given_dy, given, alpha, shift, given_gain, erf, wanted);
  }
  const at::Tensor x = given.contiguous(), dy = given_dy.contiguous(), gain = dense(given_gain);
  const kernels::PointwiseNorm norm = norm_of(erf, alpha, shift, gain, {});
  const int64_t cols = x.size(-1);
  wanted[2] = wanted[2] && shift.has_value();
  wanted[3] = wanted[3] && gain.defined();
  at::Tensor dx = wanted[0] ? at::empty_like(x) : no_gradient(x);
  RowPartials partials(x.numel() / cols, cols, 4);
  partials.for_each([&](int64_t begin, int64_t end, float* const* sums) {
    const auto if_asked = [&](size_t which, int sum) { return wanted[which] ? sums[sum] : nullptr; };
    kernels::pointwise_norm_backward(
        norm, dy.const_data_ptr<float>(), x.const_data_ptr<float>(), wanted[0] ? dx.mutable_data_ptr<float>() : nullptr,
        {.gain = if_asked(3, 0), .bias = if_asked(4, 1), .alpha = if_asked(1, 2), .shift = if_asked(2, 3)}, begin, end,
        cols);
  });
  return {dx, wanted[1] ? over_columns(partials.total(2)) : no_gradient(x),
          wanted[2] ? over_columns(partials.total(3)) : no_gradient(x), wanted[3] ? partials.total(0) : no_gradient(x),
          wanted[4] ? partials.total(1) : no_gradient(x)};
}

Made meta_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& alpha, Given shift, Given gain, bool,
                   Wanted wanted) {
  check_backward(dy, x, alpha, shift, gain);
  const auto made = [&](bool there, const c10::SymInt& size) {
    return there ? at::empty_symint({size}, x.options()) : no_gradient(x);
  };
  const c10::SymInt cols = x.sym_size(-1);
  return {wanted[0] ? empty_dense(x) : no_gradient(x), made(wanted[1], 1), made(wanted[2] && shift.has_value(), 1),
          made(wanted[3] && gain.has_value(), cols), made(wanted[4], cols)};
}

class Pair : public torch::autograd::Function<Pair> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& alpha,
                            const std::optional<at::Tensor>& shift, const std::optional<at::Tensor>& gain,
                            const std::optional<at::Tensor>& bias, bool erf) {
    const at::AutoDispatchBelowAutograd below;
    static const auto op = find_op("pointwise_norm_forward", fused_forward);
    context->save_for_backward({x, alpha, or_undefined(shift), or_undefined(gain)});
    context->saved_data["has_bias"] = bias.has_value();
    context->saved_data["erf"] = erf;
    return op.call(x, alpha, shift, gain, bias, erf);
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const auto saved = context->get_saved_variables();
    const bool has_bias = context->saved_data["has_bias"].toBool();
    const auto asked = wanted_gradients(context, {true, true, saved[2].defined(), saved[3].defined(), has_bias});
    const Wanted wanted = {asked[0], asked[1], asked[2], asked[3], asked[4]};
    const BelowAutograd below;
    static const auto op = find_op("pointwise_norm_backward", fused_backward);
    const auto [dx, dalpha, dshift, dgain, dbias] =
        op.call(grads[0], saved[0], saved[1], as_optional(saved[2]), as_optional(saved[3]),
                context->saved_data["erf"].toBool(), wanted);
    return {if_wanted(wanted[0], dx),    if_wanted(wanted[1], dalpha), if_wanted(wanted[2], dshift),
            if_wanted(wanted[3], dgain), if_wanted(wanted[4], dbias),  at::Tensor()};
  }
};

at::Tensor pair(const at::Tensor& x, const at::Tensor& alpha, Given shift, Given gain, Given bias, bool erf) {
  return Pair::apply(dense_once(x), alpha, shift, gain, bias, erf);
}

at::Tensor alone(const at::Tensor& x, const at::Tensor& alpha, Given shift, Given gain, Given bias, bool erf) {
  static const auto op = find_op("pointwise_norm_forward", fused_forward);
  return op.call(x, alpha, shift, gain, bias, erf);
}

TORCH_LIBRARY_FRAGMENT(siamese, library) {
  const std::string given = "(Tensor x, Tensor alpha, Tensor? shift, Tensor? gain, Tensor? bias, bool erf) -> Tensor";
  define_pair(library, "pointwise_norm" + given, pair, alone);
  define_part(library, "pointwise_norm_forward" + given, plain_forward, fused_forward, meta_forward);
  define_part(library,
              "pointwise_norm_backward(Tensor dy, Tensor x, Tensor alpha, Tensor? shift, Tensor? gain, bool erf, "
              "bool[5] wanted) -> (Tensor dx, Tensor dalpha, Tensor dshift, Tensor dgain, Tensor dbias)",
              plain_backward, fused_backward, meta_backward);
}

}  // namespace pointwise_norm_op

at::Tensor pointwise_norm(PointwiseFunction function, const at::Tensor& x, const at::Tensor& alpha,
                          const at::Tensor& shift, const at::Tensor& gain, const at::Tensor& bias) {
  const PartScope scope("part::norm");
  static const auto op = find_op("pointwise_norm", pointwise_norm_op::pair);
  return op.call(x, alpha, as_optional(shift), as_optional(gain), as_optional(bias),
                 function == PointwiseFunction::erf);
}

}  // namespace siamese::ops
