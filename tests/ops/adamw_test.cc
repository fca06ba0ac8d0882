#include "siamese/ops/adamw.h"

#include "tests/support/tensors.h"

namespace siamese::ops {
namespace {

using testing::randn;

// The published update, element by element in double, over several steps.
TEST(AdamW, FusedAndPlainEqualTheFormulaInDouble) {
  for (const int64_t size : {1, 31, 33, 257, 40000}) {
    const at::Tensor start = randn({size}, 1, at::kFloat);
    at::Tensor exact = start.to(at::kDouble).clone();
    at::Tensor m = at::zeros_like(exact);
    at::Tensor v = at::zeros_like(exact);
    std::vector<at::Tensor> fused = {start.clone(), at::zeros_like(start), at::zeros_like(start)};
    std::vector<at::Tensor> plain_state = {start.clone(), at::zeros_like(start), at::zeros_like(start)};
    for (int64_t t = 1; t <= 5; ++t) {
      const AdamWArguments a{
          .lr = 3e-3, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .clip_scale = 0.7, .applied_steps = t};
      const at::Tensor gradient = randn({size}, 10 + static_cast<uint64_t>(t), at::kFloat);
      adamw_step(a, {{gradient, fused[0], fused[1], fused[2], 0.1}});
      plain::adamw_step(a, {{gradient, plain_state[0], plain_state[1], plain_state[2], 0.1}});
      const at::Tensor g = gradient.to(at::kDouble) * 0.7;
      m = 0.9 * m + 0.1 * g;
      v = 0.95 * v + 0.05 * g * g;
      const double c1 = 1 - std::pow(0.9, t);
      const double c2 = 1 - std::pow(0.95, t);
      exact = exact * (1 - 3e-3 * 0.1) - 3e-3 * (m / c1) / ((v / c2).sqrt() + 1e-8);
    }
    testing::expect_close(fused[0], exact, 1e-6, "fused parameter");
    testing::expect_close(fused[1], m, 1e-6, "fused first moment");
    testing::expect_close(fused[2], v, 1e-6, "fused second moment");
    testing::expect_close(plain_state[0], exact, 1e-6, "plain parameter");
  }
}

}  // namespace
}  // namespace siamese::ops
