#include "siamese/ops/norm.h"

#include <array>
#include <tuple>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "siamese/kernels/layer_norm.h"
#include "siamese/kernels/rms_norm.h"
#include "siamese/ops/arguments.h"
#include "siamese/ops/library.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/norm_statistics.h"
#include "siamese/ops/norm_step.h"
#include "siamese/ops/partials.h"
#include "siamese/ops/plain_gradient.h"
#include "siamese/ops/pointers.h"
#include "siamese/ops/pointwise_norm.h"
#include "siamese/ops/scope.h"
#include "siamese/ops/wide.h"

namespace siamese::ops {

namespace plain {

// In float at least: the square of 300 is no number of float16. Rounded once.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& gain, double eps) {
  const at::Tensor value = wide(x);
  const at::Tensor y = value * at::rsqrt(value.square().mean(-1, true) + eps);
  return (gain.defined() ? y * gain : y).to(x.scalar_type());
}

at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& gain, const at::Tensor& bias, double eps) {
  const at::Tensor value = wide(x);
  const at::Tensor centred = value - value.mean(-1, true);
  at::Tensor y = centred * at::rsqrt(centred.square().mean(-1, true) + eps);
  if (gain.defined()) y = y * gain;
  return (bias.defined() ? y + bias : y).to(x.scalar_type());
}

}  // namespace plain

namespace norm_detail {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;
using Optional = std::optional<at::Tensor>;

void check(const char* op, const at::Tensor& x, const Optional& gain, const Optional& bias) {
  Arguments arguments(op, "x", x);
  arguments.least_rank("x", x, 1);
  const c10::SymInt cols = x.sym_size(-1);
  if (cols == 0) arguments.require(false, "x", "rows of at least one number", "shape " + shape_text(x.sym_sizes()));
  arguments.shape("gain", or_undefined(gain), {cols}).shape("bias", or_undefined(bias), {cols});
}

void check_backward(const char* op, const at::Tensor& dy, const at::Tensor& x, const Optional& gain,
                    std::initializer_list<at::Tensor> statistics) {
  check(op, x, gain, {});
  Arguments arguments(op, "x", x);
  arguments.shape("dy", dy, x.sym_sizes());
  for (const auto& statistic : statistics) {
    arguments.shape("statistics", statistic, x.sym_sizes().slice(0, static_cast<size_t>(x.dim() - 1)));
  }
}

at::Tensor dense(const Optional& tensor) { return tensor.has_value() ? tensor->contiguous() : at::Tensor(); }

// A number for each row of x, and a row.
at::Tensor empty_rows(const at::Tensor& x) { return empty_dense(x.select(-1, 0)); }
at::Tensor empty_row(const at::Tensor& x) { return at::empty_symint({x.sym_size(-1)}, x.options()); }

}  // namespace norm_detail

// y, and 1 / sqrt(mean(x^2) + eps) of each row.
namespace rms_norm_op {

using namespace norm_detail;
using Made = std::tuple<at::Tensor, at::Tensor>;

Made plain_forward(const at::Tensor& x, const Optional& gain, double eps) {
  check("rms_norm", x, gain, {});
  const OneThread one_thread;
  const auto statistics = plain::norm_statistics(x, /*layer=*/false, eps);
  return {plain::rms_norm(x, or_undefined(gain), eps).contiguous(), statistics[0].contiguous()};
}

Made fused_forward(const at::Tensor& given, const Optional& given_gain, double eps) {
  check("rms_norm", given, given_gain, {});
  if (!use_fused("rms_norm", {given})) return plain_forward(given, given_gain, eps);
  const at::Tensor x = given.contiguous();
  const at::Tensor gain = dense(given_gain);
  const int64_t cols = x.size(-1);
  at::Tensor y = at::empty_like(x);
  at::Tensor rstd = empty_rows(x);
  at::parallel_for(0, rstd.numel(), row_grain(cols), [&](int64_t begin, int64_t end) {
    kernels::rms_norm_forward(x.const_data_ptr<float>(), data_or_null(gain), static_cast<float>(eps),
                              y.mutable_data_ptr<float>(), rstd.mutable_data_ptr<float>(), begin, end, cols);
  });
  return {y, rstd};
}

Made meta_forward(const at::Tensor& x, const Optional& gain, double) {
  check("rms_norm", x, gain, {});
  return {empty_dense(x), empty_rows(x)};
}

// -> dx, dgain
Made plain_backward(const at::Tensor& dy, const at::Tensor& x, const Optional& gain, const at::Tensor&, double eps,
                    std::array<bool, 2> wanted) {
  const Tensors made = gradients_of({x, or_undefined(gain)}, {wanted[0], wanted[1]}, {dy}, [&](const Tensors& given) {
    return Tensors{plain::rms_norm(given[0], given[1], eps)};
  });
  return {made[0], made[1]};
}

Made fused_backward(const at::Tensor& given_dy, const at::Tensor& given, const Optional& given_gain,
                    const at::Tensor& given_rstd, double eps, std::array<bool, 2> wanted) {
  check_backward("rms_norm_backward", given_dy, given, given_gain, {given_rstd});
  if (!use_fused("rms_norm", {given})) return plain_backward(given_dy, given, given_gain, given_rstd, eps, wanted);
  const at::Tensor x = given.contiguous();
  const at::Tensor dy = given_dy.contiguous();
  const at::Tensor gain = dense(given_gain);
  const at::Tensor rstd = given_rstd.contiguous();
  const int64_t cols = x.size(-1);
  const bool want_gain = wanted[1] && gain.defined();
  at::Tensor dx = at::empty_like(x);
  RowPartials partials(rstd.numel(), cols, want_gain ? 1 : 0);
  partials.for_each([&](int64_t begin, int64_t end, float* const* sums) {
    kernels::rms_norm_backward(dy.const_data_ptr<float>(), x.const_data_ptr<float>(), data_or_null(gain),
                               rstd.const_data_ptr<float>(), dx.mutable_data_ptr<float>(), sums[0], begin, end, cols);
  });
  return {wanted[0] ? dx : no_gradient(x), want_gain ? partials.total(0) : no_gradient(x)};
}

Made meta_backward(const at::Tensor& dy, const at::Tensor& x, const Optional& gain, const at::Tensor& rstd, double,
                   std::array<bool, 2> wanted) {
  check_backward("rms_norm_backward", dy, x, gain, {rstd});
  return {wanted[0] ? empty_dense(x) : no_gradient(x), wanted[1] && gain.has_value() ? empty_row(x) : no_gradient(x)};
}

class Pair : public torch::autograd::Function<Pair> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const Optional& gain, double eps) {
    const at::AutoDispatchBelowAutograd below;
    static const auto op = find_op("rms_norm_forward", fused_forward);
    const auto [y, rstd] = op.call(x, gain, eps);
    context->save_for_backward({x, or_undefined(gain), rstd});
    context->saved_data["eps"] = eps;
    return y;
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const auto saved = context->get_saved_variables();
    const auto wanted = wanted_gradients(context, {true, saved[1].defined()});
    const BelowAutograd below;
    static const auto op = find_op("rms_norm_backward", fused_backward);
    const auto [dx, dgain] = op.call(grads[0], saved[0], as_optional(saved[1]), saved[2],
                                     context->saved_data["eps"].toDouble(), {wanted[0], wanted[1]});
    return {if_wanted(wanted[0], dx), if_wanted(wanted[1], dgain), at::Tensor()};
  }
};

at::Tensor pair(const at::Tensor& x, const Optional& gain, double eps) { return Pair::apply(dense_once(x), gain, eps); }

at::Tensor alone(const at::Tensor& x, const Optional& gain, double eps) {
  static const auto op = find_op("rms_norm_forward", fused_forward);
  return std::get<0>(op.call(x, gain, eps));
}

TORCH_LIBRARY_FRAGMENT(siamese, library) {
  define_pair(library, "rms_norm(Tensor x, Tensor? gain, float eps) -> Tensor", pair, alone);
  define_part(library, "rms_norm_forward(Tensor x, Tensor? gain, float eps) -> (Tensor y, Tensor rstd)", plain_forward,
              fused_forward, meta_forward);
  define_part(library,
              "rms_norm_backward(Tensor dy, Tensor x, Tensor? gain, Tensor rstd, float eps, bool[2] wanted) -> "
              "(Tensor dx, Tensor dgain)",
              plain_backward, fused_backward, meta_backward);
}

}  // namespace rms_norm_op

// y, and mean and 1 / sqrt(variance + eps) of each row.
namespace layer_norm_op {

using namespace norm_detail;
using Made = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

Made plain_forward(const at::Tensor& x, const Optional& gain, const Optional& bias, double eps) {
  check("layer_norm", x, gain, bias);
  const OneThread one_thread;
  const auto statistics = plain::norm_statistics(x, /*layer=*/true, eps);
  return {plain::layer_norm(x, or_undefined(gain), or_undefined(bias), eps).contiguous(), statistics[0].contiguous(),
          statistics[1].contiguous()};
}

Made fused_forward(const at::Tensor& given, const Optional& given_gain, const Optional& given_bias, double eps) {
  check("layer_norm", given, given_gain, given_bias);
  if (!use_fused("layer_norm", {given})) return plain_forward(given, given_gain, given_bias, eps);
  const at::Tensor x = given.contiguous();
  const at::Tensor gain = dense(given_gain);
  const at::Tensor bias = dense(given_bias);
  const int64_t cols = x.size(-1);
  at::Tensor y = at::empty_like(x);
  at::Tensor mean = empty_rows(x);
  at::Tensor rstd = empty_rows(x);
  at::parallel_for(0, rstd.numel(), row_grain(cols), [&](int64_t begin, int64_t end) {
    kernels::layer_norm_forward(x.const_data_ptr<float>(), data_or_null(gain), data_or_null(bias),
                                static_cast<float>(eps), y.mutable_data_ptr<float>(), mean.mutable_data_ptr<float>(),
                                rstd.mutable_data_ptr<float>(), begin, end, cols);
  });
  return {y, mean, rstd};
}

Made meta_forward(const at::Tensor& x, const Optional& gain, const Optional& bias, double) {
  check("layer_norm", x, gain, bias);
  return {empty_dense(x), empty_rows(x), empty_rows(x)};
}

// -> dx, dgain, dbias
Made plain_backward(const at::Tensor& dy, const at::Tensor& x, const Optional& gain, const at::Tensor&,
                    const at::Tensor&, double eps, std::array<bool, 3> wanted) {
  // A bias is no part of any other gradient.
  const at::Tensor bias = wanted[2] ? at::zeros({x.size(-1)}, x.options()) : at::Tensor();
  const Tensors made =
      gradients_of({x, or_undefined(gain), bias}, {wanted[0], wanted[1], wanted[2]}, {dy},
                   [&](const Tensors& given) { return Tensors{plain::layer_norm(given[0], given[1], given[2], eps)}; });
  return {made[0], made[1], made[2]};
}

Made fused_backward(const at::Tensor& given_dy, const at::Tensor& given, const Optional& given_gain,
                    const at::Tensor& given_mean, const at::Tensor& given_rstd, double eps,
                    std::array<bool, 3> wanted) {
  check_backward("layer_norm_backward", given_dy, given, given_gain, {given_mean, given_rstd});
  if (!use_fused("layer_norm", {given})) {
    return plain_backward(given_dy, given, given_gain, given_mean, given_rstd, eps, wanted);
  }
  const at::Tensor x = given.contiguous();
  const at::Tensor dy = given_dy.contiguous();
  const at::Tensor gain = dense(given_gain);
  const at::Tensor mean = given_mean.contiguous();
  const at::Tensor rstd = given_rstd.contiguous();
  const int64_t cols = x.size(-1);
  const bool want_gain = wanted[1] && gain.defined();
  at::Tensor dx = at::empty_like(x);
  RowPartials partials(rstd.numel(), cols, 2);
  partials.for_each([&](int64_t begin, int64_t end, float* const* sums) {
    kernels::layer_norm_backward(dy.const_data_ptr<float>(), x.const_data_ptr<float>(), data_or_null(gain),
                                 mean.const_data_ptr<float>(), rstd.const_data_ptr<float>(),
                                 dx.mutable_data_ptr<float>(), want_gain ? sums[0] : nullptr,
                                 wanted[2] ? sums[1] : nullptr, begin, end, cols);
  });
  return {wanted[0] ? dx : no_gradient(x), want_gain ? partials.total(0) : no_gradient(x),
          wanted[2] ? partials.total(1) : no_gradient(x)};
}

Made meta_backward(const at::Tensor& dy, const at::Tensor& x, const Optional& gain, const at::Tensor& mean,
                   const at::Tensor& rstd, double, std::array<bool, 3> wanted) {
  check_backward("layer_norm_backward", dy, x, gain, {mean, rstd});
  return {wanted[0] ? empty_dense(x) : no_gradient(x), wanted[1] && gain.has_value() ? empty_row(x) : no_gradient(x),
          wanted[2] ? empty_row(x) : no_gradient(x)};
}

class Pair : public torch::autograd::Function<Pair> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const Optional& gain, const Optional& bias,
                            double eps) {
    const at::AutoDispatchBelowAutograd below;
    static const auto op = find_op("layer_norm_forward", fused_forward);
    const auto [y, mean, rstd] = op.call(x, gain, bias, eps);
    context->save_for_backward({x, or_undefined(gain), mean, rstd});
    context->saved_data["eps"] = eps;
    context->saved_data["has_bias"] = bias.has_value();
    return y;
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const auto saved = context->get_saved_variables();
    const bool has_bias = context->saved_data["has_bias"].toBool();
    const auto wanted = wanted_gradients(context, {true, saved[1].defined(), has_bias});
    const BelowAutograd below;
    static const auto op = find_op("layer_norm_backward", fused_backward);
    const auto [dx, dgain, dbias] = op.call(grads[0], saved[0], as_optional(saved[1]), saved[2], saved[3],
                                            context->saved_data["eps"].toDouble(), {wanted[0], wanted[1], wanted[2]});
    return {if_wanted(wanted[0], dx), if_wanted(wanted[1], dgain), if_wanted(wanted[2], dbias), at::Tensor()};
  }
};

at::Tensor pair(const at::Tensor& x, const Optional& gain, const Optional& bias, double eps) {
  return Pair::apply(dense_once(x), gain, bias, eps);
}

at::Tensor alone(const at::Tensor& x, const Optional& gain, const Optional& bias, double eps) {
  static const auto op = find_op("layer_norm_forward", fused_forward);
  return std::get<0>(op.call(x, gain, bias, eps));
}

TORCH_LIBRARY_FRAGMENT(siamese, library) {
  define_pair(library, "layer_norm(Tensor x, Tensor? gain, Tensor? bias, float eps) -> Tensor", pair, alone);
  define_part(
      library,
      "layer_norm_forward(Tensor x, Tensor? gain, Tensor? bias, float eps) -> (Tensor y, Tensor mean, Tensor rstd)",
      plain_forward, fused_forward, meta_forward);
  define_part(library,
              "layer_norm_backward(Tensor dy, Tensor x, Tensor? gain, Tensor mean, Tensor rstd, float eps, "
              "bool[3] wanted) -> (Tensor dx, Tensor dgain, Tensor dbias)",
              plain_backward, fused_backward, meta_backward);
}

}  // namespace layer_norm_op

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& gain, double eps) {
  const PartScope scope("part::norm");
  static const auto op = find_op("rms_norm", rms_norm_op::pair);
  return op.call(x, as_optional(gain), eps);
}

at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& gain, const at::Tensor& bias, double eps) {
  const PartScope scope("part::norm");
  static const auto op = find_op("layer_norm", layer_norm_op::pair);
  return op.call(x, as_optional(gain), as_optional(bias), eps);
}

at::Tensor apply(const NormStep& norm, const at::Tensor& x) {
  if (!norm.present) return x;
  if (norm.pointwise()) {
    const PointwiseFunction function = norm.erf ? PointwiseFunction::erf : PointwiseFunction::tanh;
    return pointwise_norm(function, x, norm.alpha, norm.shift, norm.gain, norm.bias);
  }
  Arguments("rms_norm", "x", x).require(norm.layer || !norm.bias.defined(), "bias", "no bias beside an RMSNorm", "one");
  return norm.layer ? layer_norm(x, norm.gain, norm.bias, norm.eps) : rms_norm(x, norm.gain, norm.eps);
}

}  // namespace siamese::ops
