#include "siamese/ops/row_linear.h"

#include <array>
#include <tuple>
#include <vector>

#include <ATen/ATen.h>

#include "siamese/ops/arguments.h"
#include "siamese/ops/library.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/product.h"
#include "siamese/ops/row_parts.h"

namespace siamese::ops {

namespace plain {

at::Tensor row_linear(const at::Tensor& x, const at::Tensor& weight) { return at::matmul(x, weight.t()); }

}  // namespace plain

namespace row_linear_op {

using namespace row_parts;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;
using Gradients = std::tuple<at::Tensor, at::Tensor>;

at::Tensor plain_forward(const at::Tensor& x, const at::Tensor& weight) {
  check("row_linear", x, weight);
  return times_transposed(flattened(x), weight).contiguous().view_symint(with_last(x, weight.sym_size(0)));
}

at::Tensor fused_forward(const at::Tensor& x, const at::Tensor& weight) {
  check("row_linear", x, weight);
  if (!use_fused("row_linear", {x})) return plain_forward(x, weight);
  const at::Tensor flat = flattened(x);
  at::Tensor y = at::empty({flat.size(0), weight.size(0)}, x.options());
  for_each_part(parts_of(flat), [&](int64_t, int64_t begin, int64_t rows) {
    at::Tensor out = y.narrow(0, begin, rows);
    at::mm_out(out, flat.narrow(0, begin, rows), weight.t());
  });
  return y.view_symint(with_last(x, weight.size(0)));
}

at::Tensor meta_forward(const at::Tensor& x, const at::Tensor& weight) {
  check("row_linear", x, weight);
  return at::empty_symint(with_last(x, weight.sym_size(0)), x.options());
}

void check_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight) {
  check("row_linear_backward", x, weight);
  Arguments("row_linear_backward", "x", x).shape("dy", dy, with_last(x, weight.sym_size(0)));
}

Gradients plain_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight,
                         std::array<bool, 2> wanted) {
  check_backward(dy, x, weight);
  const at::Tensor rows = flattened(dy);
  return {wanted[0] ? times(rows, weight).contiguous().view_symint(x.sym_sizes()) : no_gradient(x),
          wanted[1] ? times(rows.t(), flattened(x)).contiguous() : no_gradient(x)};
}

Gradients fused_backward(const at::Tensor& given_dy, const at::Tensor& x, const at::Tensor& weight,
                         std::array<bool, 2> wanted) {
  check_backward(given_dy, x, weight);
  if (!use_fused("row_linear", {x})) return plain_backward(given_dy, x, weight, wanted);
  const at::Tensor flat = flattened(x);
  const at::Tensor dy = flattened(given_dy);
  const auto partition = parts_of(flat);
  at::Tensor dx = wanted[0] ? at::empty(flat.sizes(), flat.options()) : no_gradient(x);
  std::vector<at::Tensor> parts(wanted[1] ? static_cast<size_t>(partition.parts) : 0);
  for_each_part(partition, [&](int64_t part, int64_t begin, int64_t rows) {
    const at::Tensor dy_part = dy.narrow(0, begin, rows);
    if (wanted[0]) {
      at::Tensor out = dx.narrow(0, begin, rows);
      at::mm_out(out, dy_part, weight);
    }
    if (wanted[1]) parts[static_cast<size_t>(part)] = at::mm(dy_part.t(), flat.narrow(0, begin, rows));
  });
  return {wanted[0] ? dx.view(x.sizes()) : dx, wanted[1] ? in_order(parts, weight) : no_gradient(x)};
}

Gradients meta_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight,
                        std::array<bool, 2> wanted) {
  check_backward(dy, x, weight);
  return {wanted[0] ? empty_dense(x) : no_gradient(x), wanted[1] ? empty_dense(weight) : no_gradient(x)};
}

class Pair : public torch::autograd::Function<Pair> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight) {
    const at::AutoDispatchBelowAutograd below;
    static const auto op = find_op("row_linear_forward", fused_forward);
    context->save_for_backward({x, weight});
    return op.call(x, weight);
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const auto saved = context->get_saved_variables();
    const auto wanted = wanted_gradients(context, {true, true});
    const BelowAutograd below;
    static const auto op = find_op("row_linear_backward", fused_backward);
    const auto [dx, dweight] = op.call(grads[0], saved[0], saved[1], {wanted[0], wanted[1]});
    return {if_wanted(wanted[0], dx), if_wanted(wanted[1], dweight)};
  }
};

at::Tensor pair(const at::Tensor& x, const at::Tensor& weight) { return Pair::apply(dense_once(x), weight); }

at::Tensor alone(const at::Tensor& x, const at::Tensor& weight) {
  static const auto op = find_op("row_linear_forward", fused_forward);
  return op.call(x, weight);
}

TORCH_LIBRARY_FRAGMENT(siamese, library) {
  define_pair(library, "row_linear(Tensor x, Tensor weight) -> Tensor", pair, alone);
  define_part(library, "row_linear_forward(Tensor x, Tensor weight) -> Tensor", plain_forward, fused_forward,
              meta_forward);
  define_part(library,
              "row_linear_backward(Tensor dy, Tensor x, Tensor weight, bool[2] wanted) -> (Tensor dx, Tensor dweight)",
              plain_backward, fused_backward, meta_backward);
}

}  // namespace row_linear_op

at::Tensor row_linear(const at::Tensor& x, const at::Tensor& weight) {
  static const auto op = find_op("row_linear", row_linear_op::pair);
  return op.call(x, weight);
}

namespace row_linear_op {

// Each row is 1 times the parameter, so that its gradient is that of a weight. Where there is none, a view will do.
template <class Linear>
at::Tensor ones_times(const at::Tensor& parameter, c10::SymIntArrayRef leading, const Linear& linear) {
  c10::SymDimVector shape(leading.begin(), leading.end());
  shape.append(parameter.sym_sizes().begin(), parameter.sym_sizes().end());
  if (!c10::GradMode::is_enabled()) return parameter.expand_symint(shape);
  c10::SymDimVector ones(leading.begin(), leading.end());
  ones.push_back(1);
  return linear(at::ones_symint(ones, parameter.options()), parameter.reshape({-1, 1})).view_symint(shape);
}

}  // namespace row_linear_op

at::Tensor for_each_row(const at::Tensor& parameter, c10::SymIntArrayRef leading) {
  return row_linear_op::ones_times(parameter, leading, row_linear);
}

namespace plain {

at::Tensor for_each_row(const at::Tensor& parameter, c10::SymIntArrayRef leading) {
  return row_linear_op::ones_times(parameter, leading, row_linear);
}

}  // namespace plain

}  // namespace siamese::ops
