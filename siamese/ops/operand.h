// The type in which products take their operands, one switch for a whole run (config key engine.precision). With
// bfloat16 the branches compute in it: their input, what stands between their products, and their output, which a
// product rounds once. Streams, statistics, softmax, losses and the sums of gradients are float32, and so are weights:
// an op that gets a weight of float32 beside activations of bfloat16 rounds the weight to multiply with it, and gives
// its gradient in float32.
#pragma once

#include <ATen/core/Tensor.h>

#include "siamese/base/enum_text.h"

namespace siamese::ops {

enum class Precision { float32, bfloat16 };

void set_precision(Precision precision);
Precision precision();

// Sets the precision for a scope: tests compare both.
class PrecisionGuard {
 public:
  explicit PrecisionGuard(Precision wanted) : previous_(precision()) { set_precision(wanted); }
  ~PrecisionGuard() { set_precision(previous_); }
  PrecisionGuard(const PrecisionGuard&) = delete;
  PrecisionGuard& operator=(const PrecisionGuard&) = delete;

 private:
  Precision previous_;
};

// Whether products take x as bfloat16: so it is with bfloat16 for float32 activations.
bool rounds_operand(const at::Tensor& x);
// With bfloat16: float32 activations as operands of products, and a product's result as a float32 tensor again. Other
// types stay, and so does everything with float32.
at::Tensor to_operand(const at::Tensor& x);
at::Tensor from_operand(const at::Tensor& y);

// While it lives, a weight is rounded to bfloat16 once, however often it is used. The weights must not change
// meanwhile: for the passes between two steps of the optimizer. Of the process, since backward may run on another
// thread.
class RoundWeightsOnce {
 public:
  RoundWeightsOnce();
  ~RoundWeightsOnce();
  RoundWeightsOnce(const RoundWeightsOnce&) = delete;
  RoundWeightsOnce& operator=(const RoundWeightsOnce&) = delete;
};

// For kernels: the weight in the type of the activations it is multiplied with.
at::Tensor weight_operand(const at::Tensor& weight, const at::Tensor& activations);

}  // namespace siamese::ops

template <>
struct siamese::EnumText<siamese::ops::Precision> {
  static constexpr EnumNames<ops::Precision, 2> names{
      {{ops::Precision::float32, "float32"}, {ops::Precision::bfloat16, "bfloat16"}}};
};
