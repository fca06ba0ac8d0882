#include "siamese/ops/row_linear.h"

#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/custom_function.h>

#include "siamese/kernels/partition.h"

namespace siamese::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

// body(part, first row, rows) for each part; inside, a product runs on one thread.
template <class Body>
void for_each_part(const kernels::Partition& partition, const Body& body) {
  at::parallel_for(0, partition.parts, 1, [&](int64_t first, int64_t last) {
    const c10::NoGradGuard no_grad;  // of this thread
    for (int64_t part = first; part < last; ++part) {
      body(part, partition.begin(part), partition.end(part) - partition.begin(part));
    }
  });
}

class RowLinear : public torch::autograd::Function<RowLinear> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight) {
    const at::Tensor flat = x.reshape({-1, x.size(-1)});
    const auto partition = kernels::partition_rows(flat.size(0), flat.size(1));
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
    const auto partition = kernels::partition_rows(flat.size(0), flat.size(1));
    at::Tensor dx = at::empty_like(flat);
    std::vector<at::Tensor> parts(static_cast<size_t>(partition.parts));
    for_each_part(partition, [&](int64_t part, int64_t begin, int64_t rows) {
      const at::Tensor dy_part = dy.narrow(0, begin, rows);
      at::Tensor out = dx.narrow(0, begin, rows);
      at::mm_out(out, dy_part, weight);
      parts[static_cast<size_t>(part)] = at::mm(dy_part.t(), flat.narrow(0, begin, rows));
    });
    at::Tensor dweight = parts.empty() ? at::zeros_like(weight) : parts[0];
    for (size_t part = 1; part < parts.size(); ++part) dweight.add_(parts[part]);
    std::vector<int64_t> shape = grads[0].sizes().vec();
    shape.back() = flat.size(1);
    return {dx.view(shape), dweight};
  }
};

}  // namespace

at::Tensor row_linear(const at::Tensor& x, const at::Tensor& weight) { return RowLinear::apply(x, weight); }

at::Tensor for_each_row(const at::Tensor& parameter, at::IntArrayRef leading) {
  std::vector<int64_t> ones = leading.vec();
  ones.push_back(1);
  std::vector<int64_t> shape = leading.vec();
  shape.insert(shape.end(), parameter.sizes().begin(), parameter.sizes().end());
  return row_linear(at::ones(ones, parameter.options()), parameter.reshape({-1, 1})).view(shape);
}

}  // namespace siamese::ops
