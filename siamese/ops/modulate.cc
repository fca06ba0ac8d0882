#include "siamese/ops/modulate.h"

#include <algorithm>
#include <array>
#include <tuple>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "siamese/kernels/modulate.h"
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

at::Tensor modulate(const at::Tensor& x, const at::Tensor& shift, const at::Tensor& scale) {
  return x * (1 + scale.unsqueeze(1)) + shift.unsqueeze(1);
}

at::Tensor gate(const at::Tensor& x, const at::Tensor& gate) { return x * gate.unsqueeze(1); }

}  // namespace plain

// What both ops share: a gate is a modulation without shift whose factor is the scale alone.
namespace modulate_detail {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

constexpr int64_t kTaskColumns = 256;  // of one sample in backward: a sum's bits do not depend on it

Arguments check(const char* op, const at::Tensor& x, const char* name, const at::Tensor& by) {
  Arguments arguments(op, "x", x);
  arguments.rank("x", x, 3).shape(name, by, {x.sym_size(0), x.sym_size(2)});
  return arguments;
}

at::Tensor empty_vectors(const at::Tensor& x) { return at::empty_symint({x.sym_size(0), x.sym_size(2)}, x.options()); }

// The kernel reads rows at any stride; only elements of a row must be neighbours.
at::Tensor with_dense_rows(const at::Tensor& by) {
  return by.is_cpu() && by.dim() == 2 && by.sym_stride(1) != 1 ? by.contiguous() : by;
}

kernels::Modulation modulation(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& shift, float one) {
  kernels::Modulation by{.tokens = x.size(1),
                         .cols = x.size(2),
                         .one = one,
                         .scale = scale.const_data_ptr<float>(),
                         .scale_stride = scale.stride(0)};
  if (!shift.defined()) return by;
  by.shift = shift.const_data_ptr<float>();
  by.shift_stride = shift.stride(0);
  return by;
}

at::Tensor forward(const at::Tensor& given, const at::Tensor& given_scale, const at::Tensor& given_shift, float one,
                   bool half) {
  const at::Tensor x = given.contiguous();
  const at::Tensor scale = with_dense_rows(given_scale);
  const at::Tensor shift = given_shift.defined() ? with_dense_rows(given_shift) : given_shift;
  const kernels::Modulation by = modulation(x, scale, shift, one);
  at::Tensor y = at::empty(x.sizes(), half_if(half, x));
  with_element_type(y, [&](auto element) {
    using T = decltype(element);
    at::parallel_for(0, x.size(0) * by.tokens, row_grain(by.cols), [&](int64_t begin, int64_t end) {
      kernels::modulate_forward(by, x.const_data_ptr<float>(), writable_of<T>(y), begin, end);
    });
  });
  return y;
}

// dx and dscale; dshift where it is defined.
std::tuple<at::Tensor, at::Tensor> backward(const at::Tensor& given_dy, const at::Tensor& given,
                                            const at::Tensor& given_scale, const at::Tensor& dshift, float one) {
  const at::Tensor x = given.contiguous();
  const at::Tensor dy = given_dy.contiguous();
  const at::Tensor scale = with_dense_rows(given_scale);
  const at::Tensor dx = at::empty_like(x);
  const at::Tensor dscale = empty_vectors(x);
  const kernels::Modulation by = modulation(x, scale, {}, one);
  const int64_t blocks = (by.cols + kTaskColumns - 1) / kTaskColumns;
  with_element_type(dy, [&](auto element) {
    using T = decltype(element);
    at::parallel_for(0, x.size(0) * blocks, 1, [&](int64_t first, int64_t last) {
      for (int64_t task = first; task < last; ++task) {
        const int64_t begin = task % blocks * kTaskColumns;
        kernels::modulate_backward(by, data_of<T>(dy), x.const_data_ptr<float>(), dx.mutable_data_ptr<float>(),
                                   dscale.mutable_data_ptr<float>(), writable_or_null(dshift), task / blocks, begin,
                                   std::min(by.cols, begin + kTaskColumns));
      }
    });
  });
  return {dx, dscale};
}

}  // namespace modulate_detail

namespace modulate_op {

using namespace modulate_detail;
using Made = std::tuple<at::Tensor, at::Tensor, at::Tensor>;  // dx, dshift, dscale
using Wanted = std::array<bool, 3>;

void check_all(const at::Tensor& x, const at::Tensor& shift, const at::Tensor& scale) {
  check("modulate", x, "shift", shift);
  check("modulate", x, "scale", scale);
}

void check_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& scale) {
  check("modulate_backward", x, "scale", scale).shape_or_half("dy", dy, x.sym_sizes());
}

at::Tensor plain_forward(const at::Tensor& x, const at::Tensor& shift, const at::Tensor& scale, bool half) {
  check_all(x, shift, scale);
  const OneThread one_thread;
  return plain::modulate(x, shift, scale).contiguous().to(half_if(half, x));
}

at::Tensor fused_forward(const at::Tensor& x, const at::Tensor& shift, const at::Tensor& scale, bool half) {
  check_all(x, shift, scale);
  return use_fused("modulate", {x}) ? forward(x, scale, shift, 1, half) : plain_forward(x, shift, scale, half);
}

at::Tensor meta_forward(const at::Tensor& x, const at::Tensor& shift, const at::Tensor& scale, bool half) {
  check_all(x, shift, scale);
  return at::empty_symint(x.sym_sizes(), half_if(half, x));
}

Made plain_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& scale, Wanted wanted) {
  check_backward(dy, x, scale);
  // A shift is no part of any other gradient.
  const at::Tensor shift = wanted[1] ? at::zeros(scale.sizes(), scale.options()) : at::Tensor();
  const Tensors made = gradients_of({x, shift, scale}, {wanted[0], wanted[1], wanted[2]}, {dy.to(x.scalar_type())},
                                    [&](const Tensors& given) {
                                      const at::Tensor scaled = plain::gate(given[0], 1 + given[2]);
                                      return Tensors{given[1].defined() ? scaled + given[1].unsqueeze(1) : scaled};
                                    });
  return {made[0], made[1], made[2]};
}

Made fused_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& scale, Wanted wanted) {
  check_backward(dy, x, scale);
  if (!use_fused("modulate", {x})) return plain_backward(dy, x, scale, wanted);
  const at::Tensor dshift = wanted[1] ? empty_vectors(x) : at::Tensor();
  const auto [dx, dscale] = backward(dy, x, scale, dshift, 1);
  return {wanted[0] ? dx : no_gradient(x), wanted[1] ? dshift : no_gradient(x), wanted[2] ? dscale : no_gradient(x)};
}

Made meta_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& scale, Wanted wanted) {
  check_backward(dy, x, scale);
  return {wanted[0] ? empty_dense(x) : no_gradient(x), wanted[1] ? empty_vectors(x) : no_gradient(x),
          wanted[2] ? empty_vectors(x) : no_gradient(x)};
}

class Pair : public torch::autograd::Function<Pair> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& shift,
                            const at::Tensor& scale, bool half) {
    const at::AutoDispatchBelowAutograd below;
    static const auto op = find_op("modulate_forward", fused_forward);
    context->save_for_backward({x, scale});
    return op.call(x, shift, scale, half);
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const auto saved = context->get_saved_variables();
    const auto wanted = wanted_gradients(context, {true, true, true});
    const BelowAutograd below;
    static const auto op = find_op("modulate_backward", fused_backward);
    const auto [dx, dshift, dscale] = op.call(grads[0], saved[0], saved[1], {wanted[0], wanted[1], wanted[2]});
    return {if_wanted(wanted[0], dx), if_wanted(wanted[1], dshift), if_wanted(wanted[2], dscale), {}};
  }
};

at::Tensor pair(const at::Tensor& x, const at::Tensor& shift, const at::Tensor& scale, bool half) {
  return Pair::apply(dense_once(x), shift, with_dense_rows(scale), half);
}

at::Tensor alone(const at::Tensor& x, const at::Tensor& shift, const at::Tensor& scale, bool half) {
  static const auto op = find_op("modulate_forward", fused_forward);
  return op.call(x, shift, scale, half);
}

TORCH_LIBRARY_FRAGMENT(siamese, library) {
  const std::string given = "(Tensor x, Tensor shift, Tensor scale, bool half_output=False) -> Tensor";
  define_pair(library, "modulate" + given, pair, alone);
  define_part(library, "modulate_forward" + given, plain_forward, fused_forward, meta_forward);
  define_part(library,
              "modulate_backward(Tensor dy, Tensor x, Tensor scale, bool[3] wanted) -> "
              "(Tensor dx, Tensor dshift, Tensor dscale)",
              plain_backward, fused_backward, meta_backward);
}

}  // namespace modulate_op

namespace gate_op {

using namespace modulate_detail;
using Made = std::tuple<at::Tensor, at::Tensor>;  // dx, dgate
using Wanted = std::array<bool, 2>;

void check_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& gate) {
  check("gate_backward", x, "gate", gate).shape("dy", dy, x.sym_sizes());
}

at::Tensor plain_forward(const at::Tensor& x, const at::Tensor& gate) {
  check("gate", x, "gate", gate);
  const OneThread one_thread;
  return plain::gate(x, gate).contiguous();
}

at::Tensor fused_forward(const at::Tensor& x, const at::Tensor& gate) {
  check("gate", x, "gate", gate);
  return use_fused("gate", {x}) ? forward(x, gate, {}, 0, false) : plain_forward(x, gate);
}

at::Tensor meta_forward(const at::Tensor& x, const at::Tensor& gate) {
  check("gate", x, "gate", gate);
  return empty_dense(x);
}

Made plain_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& gate, Wanted wanted) {
  check_backward(dy, x, gate);
  const Tensors made = gradients_of({x, gate}, {wanted[0], wanted[1]}, {dy},
                                    [](const Tensors& given) { return Tensors{plain::gate(given[0], given[1])}; });
  return {made[0], made[1]};
}

Made fused_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& gate, Wanted wanted) {
  check_backward(dy, x, gate);
  if (!use_fused("gate", {x})) return plain_backward(dy, x, gate, wanted);
  const auto [dx, dgate] = backward(dy, x, gate, {}, 0);
  return {wanted[0] ? dx : no_gradient(x), wanted[1] ? dgate : no_gradient(x)};
}

Made meta_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& gate, Wanted wanted) {
  check_backward(dy, x, gate);
  return {wanted[0] ? empty_dense(x) : no_gradient(x), wanted[1] ? empty_vectors(x) : no_gradient(x)};
}

class Pair : public torch::autograd::Function<Pair> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& gate) {
    const at::AutoDispatchBelowAutograd below;
    static const auto op = find_op("gate_forward", fused_forward);
    context->save_for_backward({x, gate});
    return op.call(x, gate);
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const auto saved = context->get_saved_variables();
    const auto wanted = wanted_gradients(context, {true, true});
    const BelowAutograd below;
    static const auto op = find_op("gate_backward", fused_backward);
    const auto [dx, dgate] = op.call(grads[0], saved[0], saved[1], {wanted[0], wanted[1]});
    return {if_wanted(wanted[0], dx), if_wanted(wanted[1], dgate)};
  }
};

at::Tensor pair(const at::Tensor& x, const at::Tensor& gate) {
  return Pair::apply(dense_once(x), with_dense_rows(gate));
}

at::Tensor alone(const at::Tensor& x, const at::Tensor& gate) {
  static const auto op = find_op("gate_forward", fused_forward);
  return op.call(x, gate);
}

TORCH_LIBRARY_FRAGMENT(siamese, library) {
  define_pair(library, "gate(Tensor x, Tensor gate) -> Tensor", pair, alone);
  define_part(library, "gate_forward(Tensor x, Tensor gate) -> Tensor", plain_forward, fused_forward, meta_forward);
  define_part(library, "gate_backward(Tensor dy, Tensor x, Tensor gate, bool[2] wanted) -> (Tensor dx, Tensor dgate)",
              plain_backward, fused_backward, meta_backward);
}

}  // namespace gate_op

at::Tensor modulate(const at::Tensor& x, const at::Tensor& shift, const at::Tensor& scale, bool half_output) {
  const PartScope scope("part::modulate");
  static const auto op = find_op("modulate", modulate_op::pair);
  return op.call(x, shift, scale, half_output);
}

at::Tensor gate(const at::Tensor& x, const at::Tensor& gate) {
  const PartScope scope("part::modulate");
  static const auto op = find_op("gate", gate_op::pair);
  return op.call(x, gate);
}

}  // namespace siamese::ops
