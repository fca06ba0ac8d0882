#include "siamese/ops/sinkhorn.h"

#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "siamese/kernels/sinkhorn.h"
#include "siamese/ops/arguments.h"
#include "siamese/ops/library.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/partials.h"
#include "siamese/ops/plain_gradient.h"
#include "siamese/ops/wide.h"

namespace siamese::ops {

namespace plain {

at::Tensor sinkhorn(const at::Tensor& logits, int64_t iterations) {
  at::Tensor log_matrix = wide(logits);  // rounded once, not in every round
  for (int64_t round = 0; round < iterations; ++round) {
    log_matrix = at::log_softmax(log_matrix, -2);
    log_matrix = at::log_softmax(log_matrix, -1);
  }
  return at::exp(log_matrix).to(logits.scalar_type());
}

}  // namespace plain

// Only the logits are kept for backward: the rounds of all rows would be forty times as much.
namespace sinkhorn_op {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

constexpr int64_t kMostRounds = 1000000;  // backward holds the rounds of a few rows at a time

void check(const char* op, const at::Tensor& logits, int64_t iterations) {
  const Arguments arguments(op, "logits", logits);
  arguments.least_rank("logits", logits, 2);
  arguments.require(logits.sym_size(-1) == logits.sym_size(-2), "logits", "square matrices in the last two dimensions",
                    shape_text(logits.sym_sizes()));
  arguments.require(iterations >= 1 && iterations <= kMostRounds, "iterations",
                    "a number from 1 to " + std::to_string(kMostRounds), std::to_string(iterations));
}

void check_backward(const at::Tensor& d_out, const at::Tensor& logits, int64_t iterations) {
  check("sinkhorn_backward", logits, iterations);
  Arguments("sinkhorn_backward", "logits", logits).shape("d_out", d_out, logits.sym_sizes());
}

bool has_kernel(const at::Tensor& logits) {
  const int64_t n = logits.size(-1);
  return n >= 1 && n <= kernels::kMaxSinkhornSize && use_fused("sinkhorn", {logits});
}

at::Tensor plain_forward(const at::Tensor& logits, int64_t iterations) {
  check("sinkhorn", logits, iterations);
  const OneThread one_thread;
  return plain::sinkhorn(logits, iterations).contiguous();
}

at::Tensor fused_forward(const at::Tensor& given, int64_t iterations) {
  check("sinkhorn", given, iterations);
  if (!has_kernel(given)) return plain_forward(given, iterations);
  const at::Tensor logits = given.contiguous();
  const int64_t n = logits.size(-1);
  at::Tensor out = empty_dense(logits);
  at::parallel_for(0, logits.numel() / (n * n), row_grain(n * n * iterations), [&](int64_t begin, int64_t end) {
    kernels::sinkhorn_forward(logits.const_data_ptr<float>(), n, iterations, out.mutable_data_ptr<float>(), begin, end);
  });
  return out;
}

at::Tensor meta_forward(const at::Tensor& logits, int64_t iterations) {
  check("sinkhorn", logits, iterations);
  return empty_dense(logits);
}

at::Tensor plain_backward(const at::Tensor& d_out, const at::Tensor& logits, int64_t iterations) {
  check_backward(d_out, logits, iterations);
  return gradients_of({logits}, {true}, {d_out},
                      [&](const Tensors& given) { return Tensors{plain::sinkhorn(given[0], iterations)}; })[0];
}

at::Tensor fused_backward(const at::Tensor& given_d_out, const at::Tensor& given, int64_t iterations) {
  check_backward(given_d_out, given, iterations);
  if (!has_kernel(given)) return plain_backward(given_d_out, given, iterations);
  const at::Tensor logits = given.contiguous();
  const at::Tensor d_out = given_d_out.contiguous();
  const int64_t n = logits.size(-1);
  at::Tensor d_logits = empty_dense(logits);
  at::parallel_for(0, logits.numel() / (n * n), row_grain(n * n * iterations), [&](int64_t begin, int64_t end) {
    static thread_local std::vector<float> scratch;
    scratch.resize(static_cast<size_t>(kernels::sinkhorn_scratch(n, iterations)));
    kernels::sinkhorn_backward(d_out.const_data_ptr<float>(), logits.const_data_ptr<float>(), n, iterations,
                               d_logits.mutable_data_ptr<float>(), scratch.data(), begin, end);
  });
  return d_logits;
}

at::Tensor meta_backward(const at::Tensor& d_out, const at::Tensor& logits, int64_t iterations) {
  check_backward(d_out, logits, iterations);
  return empty_dense(logits);
}

class Pair : public torch::autograd::Function<Pair> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& logits, int64_t iterations) {
    const at::AutoDispatchBelowAutograd below;
    static const auto op = find_op("sinkhorn_forward", fused_forward);
    context->save_for_backward({logits});
    context->saved_data["iterations"] = iterations;
    return op.call(logits, iterations);
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const auto saved = context->get_saved_variables();
    const BelowAutograd below;
    static const auto op = find_op("sinkhorn_backward", fused_backward);
    return {op.call(grads[0], saved[0], context->saved_data["iterations"].toInt()), at::Tensor()};
  }
};

at::Tensor pair(const at::Tensor& logits, int64_t iterations) { return Pair::apply(dense_once(logits), iterations); }

at::Tensor alone(const at::Tensor& logits, int64_t iterations) {
  static const auto op = find_op("sinkhorn_forward", fused_forward);
  return op.call(logits, iterations);
}

TORCH_LIBRARY_FRAGMENT(siamese, library) {
  define_pair(library, "sinkhorn(Tensor logits, int iterations) -> Tensor", pair, alone);
  define_part(library, "sinkhorn_forward(Tensor logits, int iterations) -> Tensor", plain_forward, fused_forward,
              meta_forward);
  define_part(library, "sinkhorn_backward(Tensor d_out, Tensor logits, int iterations) -> Tensor", plain_backward,
              fused_backward, meta_backward);
}

}  // namespace sinkhorn_op

at::Tensor sinkhorn(const at::Tensor& logits, int64_t iterations) {
  static const auto op = find_op("sinkhorn", sinkhorn_op::pair);
  return op.call(logits, iterations);
}

}  // namespace siamese::ops
