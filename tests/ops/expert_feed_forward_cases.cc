#include "tests/ops/op_cases.h"
#include "tests/support/tensors.h"

#include "siamese/ops/expert_feed_forward.h"

namespace siamese::ops {

std::vector<OpCase> expert_feed_forward_cases() {
  using testing::randn;
  const auto of = [](Activation kind, const std::string& what, int64_t rows, int64_t per_row) {
    const int64_t in = kind == Activation::swiglu ? 10 : 5;
    const at::Tensor chosen = at::arange(rows * per_row, at::kLong).view({rows, per_row}) % 3;  // expert 3 never
    return OpCase{
        "expert_feed_forward",
        what,
        {randn({rows, 7}, 1), chosen, randn({rows, per_row}, 2), randn({4, in, 7}, 3), randn({4, 7, 5}, 4)},
        [kind](const Tensors& t) { return Tensors{expert_feed_forward(kind, t[0], t[1], t[2], t[3], t[4])}; },
        [kind](const Tensors& t) { return Tensors{plain::expert_feed_forward(kind, t[0], t[1], t[2], t[3], t[4])}; }};
  };
  return {of(Activation::swiglu, "two of four", 11, 2), of(Activation::gelu, "one of four", 5, 1),
          of(Activation::gelu_tanh, "an expert twice", 3, 4), of(Activation::swiglu, "no rows", 0, 2)};
}

}  // namespace siamese::ops
