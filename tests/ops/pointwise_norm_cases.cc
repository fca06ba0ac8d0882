#include "tests/ops/op_cases.h"
#include "tests/support/tensors.h"

#include "siamese/ops/pointwise_norm.h"

namespace siamese::ops {

std::vector<OpCase> pointwise_norm_cases() {
  using testing::randn;
  const at::Tensor x = randn({3, 5, 33}, 1) * 2 + 0.5;
  const at::Tensor gain = randn({33}, 2);
  const at::Tensor bias = randn({33}, 3);
  const at::Tensor alpha = at::full({1}, 0.7, at::kDouble);
  const at::Tensor shift = at::full({1}, -0.3, at::kDouble);
  constexpr auto kTanh = PointwiseFunction::tanh;
  constexpr auto kErf = PointwiseFunction::erf;
  return {
      {"pointwise_norm",
       "dyt",
       {x, alpha, gain, bias},
       [](const Tensors& t) { return Tensors{pointwise_norm(kTanh, t[0], t[1], {}, t[2], t[3])}; },
       [](const Tensors& t) { return Tensors{plain::pointwise_norm(kTanh, t[0], t[1], {}, t[2], t[3])}; }},
      {"pointwise_norm",
       "derf",
       {x, alpha, shift, gain, bias},
       [](const Tensors& t) { return Tensors{pointwise_norm(kErf, t[0], t[1], t[2], t[3], t[4])}; },
       [](const Tensors& t) { return Tensors{plain::pointwise_norm(kErf, t[0], t[1], t[2], t[3], t[4])}; }},
      {"pointwise_norm",
       "derf without gain and bias",
       {x, alpha, shift},
       [](const Tensors& t) { return Tensors{pointwise_norm(kErf, t[0], t[1], t[2], {}, {})}; },
       [](const Tensors& t) { return Tensors{plain::pointwise_norm(kErf, t[0], t[1], t[2], {}, {})}; }},
  };
}

}  // namespace siamese::ops
