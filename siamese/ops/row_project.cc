#include <array>
#include <tuple>
#include <vector>

#include <ATen/ATen.h>

#include "siamese/kernels/reduce.h"
#include "siamese/kernels/stream_mix.h"
#include "siamese/ops/arguments.h"
#include "siamese/ops/library.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/product.h"
#include "siamese/ops/row_linear.h"
#include "siamese/ops/row_parts.h"
#include "siamese/ops/wide.h"

namespace siamese::ops {

namespace plain {

RowProjection row_project(const at::Tensor& x, const at::Tensor& weight) {
  return {plain::row_linear(x, weight), wide(x).square().sum(-1, true), x};
}

}  // namespace plain

// Backward: dx = through + 2 dsquares x + dy W, with `through` what comes back to an x that was handed on.
namespace row_project_op {

using namespace row_parts;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;
using Optional = std::optional<at::Tensor>;
using Two = std::tuple<at::Tensor, at::Tensor>;

Two plain_forward(const at::Tensor& x, const at::Tensor& weight) {
  check("row_project", x, weight);
  const OneThread one_thread;
  return {times_transposed(flattened(x), weight).contiguous().view_symint(with_last(x, weight.sym_size(0))),
          wide(x).square().sum(-1, true).contiguous()};
}

Two fused_forward(const at::Tensor& x, const at::Tensor& weight) {
  check("row_project", x, weight);
  if (!use_fused("row_project", {x})) return plain_forward(x, weight);
  const at::Tensor flat = flattened(x).contiguous();
  const int64_t cols = flat.size(1);
  at::Tensor y = at::empty({flat.size(0), weight.size(0)}, x.options());
  at::Tensor squares = at::empty({flat.size(0)}, x.options());
  const float* const data = flat.const_data_ptr<float>();
  float* const sums = squares.mutable_data_ptr<float>();
  for_each_part(parts_of(flat), [&](int64_t, int64_t begin, int64_t rows) {
    at::Tensor out = y.narrow(0, begin, rows);
    at::mm_out(out, flat.narrow(0, begin, rows), weight.t());
    for (int64_t row = begin; row < begin + rows; ++row) {
      sums[row] = static_cast<float>(kernels::sum_squares(data, row * cols, (row + 1) * cols));
    }
  });
  return {y.view_symint(with_last(x, weight.size(0))), squares.view_symint(with_last(x, 1))};
}

Two meta_forward(const at::Tensor& x, const at::Tensor& weight) {
  check("row_project", x, weight);
  return {at::empty_symint(with_last(x, weight.sym_size(0)), x.options()),
          at::empty_symint(with_last(x, 1), x.options().dtype(wide_type(x)))};
}

void check_backward(const Optional& dy, const Optional& dsquares, const Optional& through, const at::Tensor& x,
                    const at::Tensor& weight) {
  check("row_project_backward", x, weight);
  Arguments("row_project_backward", "x", x)
      .shape("dy", or_undefined(dy), with_last(x, weight.sym_size(0)))
      .wide_shape("dsquares", or_undefined(dsquares), with_last(x, 1))
      .shape("through", or_undefined(through), x.sym_sizes());
}

Two plain_backward(const Optional& dy, const Optional& dsquares, const Optional& through, const at::Tensor& x,
                   const at::Tensor& weight, std::array<bool, 2> wanted) {
  check_backward(dy, dsquares, through, x, weight);
  const OneThread one_thread;
  at::Tensor dx = no_gradient(x);
  if (wanted[0]) {
    dx = wide(dy ? times(flattened(*dy), weight).contiguous().view_symint(x.sym_sizes())
                 : at::zeros_symint(x.sym_sizes(), x.options()));
    if (dsquares) dx += 2 * *dsquares * x;
    if (through) dx += *through;
    dx = dx.to(x.scalar_type());
  }
  at::Tensor dweight = no_gradient(x);
  if (wanted[1]) {
    dweight = dy ? times(flattened(*dy).t(), flattened(x)).contiguous()
                 : at::zeros_symint(weight.sym_sizes(), weight.options());
  }
  return {dx, dweight};
}

// through + 2 dsquares x, a weighted sum of rows, by the kernel that mixes streams.
class RowsBesideProduct {
 public:
  RowsBesideProduct(const Optional& given_through, const Optional& dsquares, const at::Tensor& flat, at::Tensor& dx) {
    if (given_through) through_ = given_through->contiguous();
    std::vector<at::Tensor> factors;
    const at::Tensor doubled = dsquares ? 2 * dsquares->reshape({-1}) : at::Tensor();
    if (through_.defined()) factors.push_back(at::ones({flat.size(0)}, flat.options()));
    if (doubled.defined()) factors.push_back(doubled);
    if (factors.empty()) return;
    factors_ = at::stack(factors, 1);
    size_t next = 0;
    if (through_.defined()) rows_.streams[next++] = through_.const_data_ptr<float>();
    if (doubled.defined()) rows_.streams[next++] = flat.const_data_ptr<float>();
    rows_.outputs = {dx.mutable_data_ptr<float>()};
    mix_.cols = flat.size(1);
    mix_.streams = static_cast<int>(next);
    mix_.outputs = 1;
    mix_.each_row = true;
    mix_.matrix = factors_.const_data_ptr<float>();
  }

  bool any() const { return factors_.defined(); }
  void write(int64_t begin, int64_t end) const { kernels::stream_mix_forward(mix_, rows_, begin, end); }

 private:
  at::Tensor through_;
  at::Tensor factors_;  // [rows, terms]
  kernels::StreamMix mix_;
  kernels::StreamMixRows rows_;
};

Two fused_backward(const Optional& given_dy, const Optional& dsquares, const Optional& through, const at::Tensor& x,
                   const at::Tensor& weight, std::array<bool, 2> wanted) {
  check_backward(given_dy, dsquares, through, x, weight);
  if (!use_fused("row_project", {x})) return plain_backward(given_dy, dsquares, through, x, weight, wanted);
  const at::Tensor flat = flattened(x).contiguous();
  const at::Tensor dy = given_dy ? flattened(*given_dy) : at::Tensor();
  at::Tensor dx = at::empty(flat.sizes(), flat.options());
  const RowsBesideProduct beside(through, dsquares, flat, dx);
  const auto partition = parts_of(flat);
  std::vector<at::Tensor> parts(wanted[1] && dy.defined() ? static_cast<size_t>(partition.parts) : 0);
  for_each_part(partition, [&](int64_t part, int64_t begin, int64_t rows) {
    at::Tensor dx_part = dx.narrow(0, begin, rows);
    if (wanted[0] && beside.any()) beside.write(begin, begin + rows);
    if (!dy.defined()) {
      if (!beside.any()) dx_part.zero_();
      return;
    }
    const at::Tensor dy_part = dy.narrow(0, begin, rows);
    if (wanted[0]) {
      beside.any() ? dx_part.addmm_(dy_part, weight) : at::mm_out(dx_part, dy_part, weight);
    }
    if (wanted[1]) parts[static_cast<size_t>(part)] = at::mm(dy_part.t(), flat.narrow(0, begin, rows));
  });
  return {wanted[0] ? dx.view(x.sizes()) : no_gradient(x), wanted[1] ? in_order(parts, weight) : no_gradient(x)};
}

Two meta_backward(const Optional& dy, const Optional& dsquares, const Optional& through, const at::Tensor& x,
                  const at::Tensor& weight, std::array<bool, 2> wanted) {
  check_backward(dy, dsquares, through, x, weight);
  return {wanted[0] ? empty_dense(x) : no_gradient(x), wanted[1] ? empty_dense(weight) : no_gradient(x)};
}

// With `hand_on` also x itself, for callers in C++: an autograd function may return its input, an op may not.
class Pair : public torch::autograd::Function<Pair> {
 public:
  static tensor_list forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight, bool hand_on) {
    const at::AutoDispatchBelowAutograd below;
    static const auto op = find_op("row_project_forward", fused_forward);
    const auto [y, squares] = op.call(x, weight);
    context->set_materialize_grads(false);
    context->save_for_backward({x, weight});
    return hand_on ? tensor_list{y, squares, x} : tensor_list{y, squares};
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const auto saved = context->get_saved_variables();
    const auto wanted = wanted_gradients(context, {true, true});
    const BelowAutograd below;
    static const auto op = find_op("row_project_backward", fused_backward);
    const auto [dx, dweight] =
        op.call(as_optional(grads[0]), as_optional(grads[1]), grads.size() > 2 ? as_optional(grads[2]) : std::nullopt,
                saved[0], saved[1], {wanted[0], wanted[1]});
    return {if_wanted(wanted[0], dx), if_wanted(wanted[1], dweight), at::Tensor()};
  }
};

Two pair(const at::Tensor& x, const at::Tensor& weight) {
  const tensor_list made = Pair::apply(dense_once(x), weight, false);
  return {made[0], made[1]};
}

Two alone(const at::Tensor& x, const at::Tensor& weight) {
  static const auto op = find_op("row_project_forward", fused_forward);
  return op.call(x, weight);
}

TORCH_LIBRARY_FRAGMENT(siamese, library) {
  define_pair(library, "row_project(Tensor x, Tensor weight) -> (Tensor y, Tensor squares)", pair, alone);
  define_part(library, "row_project_forward(Tensor x, Tensor weight) -> (Tensor y, Tensor squares)", plain_forward,
              fused_forward, meta_forward);
  define_part(library,
              "row_project_backward(Tensor? dy, Tensor? dsquares, Tensor? through, Tensor x, Tensor weight, "
              "bool[2] wanted) -> (Tensor dx, Tensor dweight)",
              plain_backward, fused_backward, meta_backward);
}

}  // namespace row_project_op

RowProjection row_project(const at::Tensor& x, const at::Tensor& weight) {
  const auto made = row_project_op::Pair::apply(dense_once(x), weight, true);
  return {made[0], made[1], made[2]};
}

}  // namespace siamese::ops
