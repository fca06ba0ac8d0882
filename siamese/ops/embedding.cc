#include "siamese/ops/embedding.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include "siamese/ops/gradient.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/one_thread.h"
#include "siamese/ops/scope.h"

namespace siamese::ops {

namespace plain {

at::Tensor embedding(const at::Tensor& table, const at::Tensor& indices) { return at::embedding(table, indices); }

}  // namespace plain

namespace {

class FusedEmbedding : public torch::autograd::Function<FusedEmbedding> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& table,
                            const at::Tensor& indices) {
    context->save_for_backward({table, indices});
    return at::embedding(table, indices);
  }

  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* context,
                                               const torch::autograd::tensor_list& grads) {
    const auto saved = context->get_saved_variables();
    const at::Tensor& table = saved[0];
    const at::Tensor indices = saved[1].contiguous();
    const at::Tensor dy = grads[0].contiguous();
    const bool in_place = adds_in_place(table);
    const at::Tensor gradient = in_place ? table.grad() : at::zeros_like(table);
    const int64_t width = table.size(1);
    const int64_t* const row = indices.const_data_ptr<int64_t>();
    const float* const from = dy.const_data_ptr<float>();
    float* const to = gradient.mutable_data_ptr<float>();
    // Cut by columns: each thread goes through all uses in order.
    at::parallel_for(0, width, 64, [&](int64_t begin, int64_t end) {
      for (int64_t i = 0; i < indices.numel(); ++i) {
        for (int64_t col = begin; col < end; ++col) to[row[i] * width + col] += from[i * width + col];
      }
    });
    return {in_place ? at::Tensor() : gradient, at::Tensor()};
  }
};

class AddToEach : public torch::autograd::Function<AddToEach> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x, const at::Tensor& row) {
    return x + row;
  }

  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* context,
                                               const torch::autograd::tensor_list& grads) {
    const OneThread one_thread;
    return {grads[0], context->needs_input_grad(1) ? grads[0].sum(0) : at::Tensor()};
  }
};

}  // namespace

at::Tensor add_to_each(const at::Tensor& x, const at::Tensor& row) { return AddToEach::apply(x, row); }

at::Tensor embedding(const at::Tensor& table, const at::Tensor& indices) {
  const PartScope scope("part::embedding");
  if (!use_fused("embedding", {table})) return plain::embedding(table, indices);
  return FusedEmbedding::apply(table, indices);
}

}  // namespace siamese::ops
