// Cases of every op of the room, for the tests that hold for all of them (library_test.cc). An op without a case fails
// there. A file <op>_cases.cc lists those of its op and adds them in op_cases.cc.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "siamese/ops/one_thread.h"  // Tensors

namespace siamese::ops {

using Call = std::function<Tensors(const Tensors&)>;

struct OpCase {
  std::string op;           // "rms_norm" of siamese::rms_norm
  std::string what;         // this case of it
  Tensors inputs;           // all tensor arguments that are there, in double or int64
  Call call;                // the op as C++ callers have it; outputs that it does not make are left out
  Call plain;               // its plain expression, differentiable
  double tolerance = 1e-5;  // of float32 against double, relative to the largest element of a tensor
  bool linear = false;      // its second derivatives are 0 and need not raise
  uint64_t constant = 0;    // bits of the inputs for which it has no gradient
};

std::vector<OpCase> op_cases();

// One for each op file.
std::vector<OpCase> activation_cases();
std::vector<OpCase> attention_cases();
std::vector<OpCase> cached_attention_cases();
std::vector<OpCase> depth_attend_cases();
std::vector<OpCase> embedding_cases();
std::vector<OpCase> expert_feed_forward_cases();
std::vector<OpCase> feed_forward_cases();
std::vector<OpCase> junction_cases();
std::vector<OpCase> linear_cases();
std::vector<OpCase> loss_cases();
std::vector<OpCase> modulate_cases();
std::vector<OpCase> norm_cases();
std::vector<OpCase> pointwise_norm_cases();
std::vector<OpCase> reduce_cases();
std::vector<OpCase> rope_cases();
std::vector<OpCase> route_cases();
std::vector<OpCase> row_linear_cases();
std::vector<OpCase> sinkhorn_cases();
std::vector<OpCase> stream_attend_cases();
std::vector<OpCase> stream_mix_cases();

}  // namespace siamese::ops
