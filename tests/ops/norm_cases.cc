#include "tests/ops/op_cases.h"
#include "tests/support/tensors.h"

#include "siamese/ops/norm.h"

namespace siamese::ops {

std::vector<OpCase> norm_cases() {
  using testing::randn;
  constexpr double kEps = 1e-5;
  const at::Tensor x = randn({3, 5, 33}, 1) * 2 + 0.5;
  const at::Tensor gain = randn({33}, 2);
  const at::Tensor bias = randn({33}, 3);
  return {
      {"rms_norm",
       "with gain",
       {x, gain},
       [](const Tensors& t) { return Tensors{rms_norm(t[0], t[1], kEps)}; },
       [](const Tensors& t) { return Tensors{plain::rms_norm(t[0], t[1], kEps)}; }},
      {"rms_norm",
       "bare",
       {x},
       [](const Tensors& t) { return Tensors{rms_norm(t[0], {}, kEps)}; },
       [](const Tensors& t) { return Tensors{plain::rms_norm(t[0], {}, kEps)}; }},
      {"layer_norm",
       "with gain and bias",
       {x, gain, bias},
       [](const Tensors& t) { return Tensors{layer_norm(t[0], t[1], t[2], kEps)}; },
       [](const Tensors& t) { return Tensors{plain::layer_norm(t[0], t[1], t[2], kEps)}; }},
      {"layer_norm",
       "with bias",
       {x, bias},
       [](const Tensors& t) { return Tensors{layer_norm(t[0], {}, t[1], kEps)}; },
       [](const Tensors& t) { return Tensors{plain::layer_norm(t[0], {}, t[1], kEps)}; }},
  };
}

}  // namespace siamese::ops
