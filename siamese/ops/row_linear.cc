#include "siamese/ops/row_linear.h"

#include <algorithm>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "siamese/kernels/partition.h"
#include "siamese/kernels/reduce.h"
#include "siamese/kernels/stream_mix.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/one_thread.h"

namespace siamese::ops {
namespace row_linear_detail {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

// Four times the usual part: calling a library for a narrow product of fewer rows costs more than the product.
kernels::Partition parts_of(const at::Tensor& flat) {
  return kernels::partition_rows(flat.size(0), std::max<int64_t>(1, flat.size(1) / 4));
}

// body(part, first row, rows) for each part; inside, a product runs on one thread.
template <class Body>
void for_each_part(const kernels::Partition& partition, const Body& body) {
  for_each_task(partition.parts,
                [&](int64_t part) { body(part, partition.begin(part), partition.end(part) - partition.begin(part)); });
}

// The parts of the weight's gradient added in order.
at::Tensor in_order(const std::vector<at::Tensor>& parts, const at::Tensor& weight) {
  if (parts.empty()) return at::zeros_like(weight);
  at::Tensor sum = parts[0];
  for (size_t part = 1; part < parts.size(); ++part) sum.add_(parts[part]);
  return sum;
}

class RowLinear : public torch::autograd::Function<RowLinear> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight) {
    const at::Tensor flat = x.reshape({-1, x.size(-1)});
    const auto partition = parts_of(flat);
    at::Tensor y = at::empty({flat.size(0), weight.size(0)}, x.options());
    for_each_part(partition, [&](int64_t, int64_t begin, int64_t rows) {
      at::Tensor out = y.narrow(0, begin, rows);
      at::mm_out(out, flat.narrow(0, begin, rows), weight.t());
    });
    context->save_for_backward({flat, weight});
    std::vector<int64_t> shape = x.sizes().vec();
    shape.back() = weight.size(0);
    return y.view(shape);
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const auto saved = context->get_saved_variables();
    const at::Tensor& flat = saved[0];
    const at::Tensor& weight = saved[1];
    const at::Tensor dy = grads[0].reshape({-1, weight.size(0)});
    const auto partition = parts_of(flat);
    at::Tensor dx = at::empty_like(flat);
    std::vector<at::Tensor> parts(static_cast<size_t>(partition.parts));
    for_each_part(partition, [&](int64_t part, int64_t begin, int64_t rows) {
      const at::Tensor dy_part = dy.narrow(0, begin, rows);
      at::Tensor out = dx.narrow(0, begin, rows);
      at::mm_out(out, dy_part, weight);
      parts[static_cast<size_t>(part)] = at::mm(dy_part.t(), flat.narrow(0, begin, rows));
    });
    const at::Tensor dweight = in_order(parts, weight);
    std::vector<int64_t> shape = grads[0].sizes().vec();
    shape.back() = flat.size(1);
    return {dx.view(shape), dweight};
  }
};

class RowProject : public torch::autograd::Function<RowProject> {
 public:
  static tensor_list forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight) {
    const at::Tensor flat = x.contiguous().view({-1, x.size(-1)});
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
    context->save_for_backward({flat, weight});
    std::vector<int64_t> shape = x.sizes().vec();
    shape.back() = weight.size(0);
    at::Tensor y_shaped = y.view(shape);
    shape.back() = 1;
    return {y_shaped, squares.view(shape), x};
  }

  // dx = what came back through x + 2 dsquares x + dy W
  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const auto saved = context->get_saved_variables();
    const at::Tensor& flat = saved[0];
    const at::Tensor& weight = saved[1];
    const at::Tensor dy = grads[0].reshape({-1, weight.size(0)});
    const at::Tensor dsquares = grads[1].reshape({-1});
    const at::Tensor through = grads[2].contiguous();
    const at::Tensor factors = at::stack({at::ones_like(dsquares), 2 * dsquares}, 1);
    at::Tensor dx = at::empty_like(flat);
    kernels::StreamMix mix;
    mix.cols = flat.size(1);
    mix.streams = 2;
    mix.outputs = 1;
    mix.each_row = true;
    mix.matrix = factors.const_data_ptr<float>();
    kernels::StreamMixRows row_data;
    row_data.streams = {through.const_data_ptr<float>(), flat.const_data_ptr<float>()};
    row_data.outputs = {dx.mutable_data_ptr<float>()};
    const auto partition = parts_of(flat);
    std::vector<at::Tensor> parts(static_cast<size_t>(partition.parts));
    for_each_part(partition, [&](int64_t part, int64_t begin, int64_t rows) {
      kernels::stream_mix_forward(mix, row_data, begin, begin + rows);
      const at::Tensor dy_part = dy.narrow(0, begin, rows);
      at::Tensor dx_part = dx.narrow(0, begin, rows);
      dx_part.addmm_(dy_part, weight);
      parts[static_cast<size_t>(part)] = at::mm(dy_part.t(), flat.narrow(0, begin, rows));
    });
    return {dx.view(grads[2].sizes()), in_order(parts, weight)};
  }
};

}  // namespace row_linear_detail

namespace plain {

RowProjection row_project(const at::Tensor& x, const at::Tensor& weight) {
  const at::Tensor squares = on_one_thread({x}, [](const Tensors& given) { return given[0].square().sum(-1, true); });
  return {ops::row_linear(x, weight), squares, x};
}

}  // namespace plain

RowProjection row_project(const at::Tensor& x, const at::Tensor& weight) {
  if (!use_fused("row_project", {x, weight})) return plain::row_project(x, weight);
  const auto made = row_linear_detail::RowProject::apply(x, weight);
  return {made[0], made[1], made[2]};
}

at::Tensor row_linear(const at::Tensor& x, const at::Tensor& weight) {
  return row_linear_detail::RowLinear::apply(x, weight);
}

at::Tensor for_each_row(const at::Tensor& parameter, at::IntArrayRef leading) {
  std::vector<int64_t> ones = leading.vec();
  ones.push_back(1);
  std::vector<int64_t> shape = leading.vec();
  shape.insert(shape.end(), parameter.sizes().begin(), parameter.sizes().end());
  return row_linear(at::ones(ones, parameter.options()), parameter.reshape({-1, 1})).view(shape);
}

}  // namespace siamese::ops
