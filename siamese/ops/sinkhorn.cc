#include "siamese/ops/sinkhorn.h"

#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include "siamese/kernels/sinkhorn.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/one_thread.h"
#include "siamese/ops/partials.h"

namespace siamese::ops {

namespace plain {

at::Tensor sinkhorn(const at::Tensor& logits, int64_t iterations) {
  at::Tensor log_matrix = logits;
  for (int64_t round = 0; round < iterations; ++round) {
    log_matrix = at::log_softmax(log_matrix, -2);
    log_matrix = at::log_softmax(log_matrix, -1);
  }
  return at::exp(log_matrix);
}

}  // namespace plain

namespace sinkhorn_detail {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

// Only the logits are kept: the rounds of all rows would be forty times as much.
class FusedSinkhorn : public torch::autograd::Function<FusedSinkhorn> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& given, int64_t iterations) {
    const at::Tensor logits = given.contiguous();
    const int64_t n = logits.size(-1);
    at::Tensor out = at::empty_like(logits);
    at::parallel_for(0, logits.numel() / (n * n), row_grain(n * n * iterations), [&](int64_t begin, int64_t end) {
      kernels::sinkhorn_forward(logits.const_data_ptr<float>(), n, iterations, out.mutable_data_ptr<float>(), begin,
                                end);
    });
    context->save_for_backward({logits});
    context->saved_data["iterations"] = iterations;
    return out;
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const at::Tensor logits = context->get_saved_variables()[0];
    const int64_t iterations = context->saved_data["iterations"].toInt();
    const int64_t n = logits.size(-1);
    const at::Tensor d_out = grads[0].contiguous();
    at::Tensor d_logits = at::empty_like(logits);
    at::parallel_for(0, logits.numel() / (n * n), row_grain(n * n * iterations), [&](int64_t begin, int64_t end) {
      static thread_local std::vector<float> scratch;
      scratch.resize(static_cast<size_t>(kernels::sinkhorn_scratch(n, iterations)));
      kernels::sinkhorn_backward(d_out.const_data_ptr<float>(), logits.const_data_ptr<float>(), n, iterations,
                                 d_logits.mutable_data_ptr<float>(), scratch.data(), begin, end);
    });
    return {d_logits, at::Tensor()};
  }
};

}  // namespace sinkhorn_detail

at::Tensor sinkhorn(const at::Tensor& logits, int64_t iterations) {
  if (logits.size(-1) > kernels::kMaxSinkhornSize || !use_fused("sinkhorn", {logits})) {
    return on_one_thread({logits}, [&](const Tensors& given) { return plain::sinkhorn(given[0], iterations); });
  }
  return sinkhorn_detail::FusedSinkhorn::apply(logits, iterations);
}

}  // namespace siamese::ops
