#include "siamese/ops/adamw.h"

#include "tests/support/tensors.h"

#include "siamese/base/check.h"

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
    testing::expect_relative(fused[0], exact, 1e-6, "fused parameter");
    testing::expect_relative(fused[1], m, 1e-6, "fused first moment");
    testing::expect_relative(fused[2], v, 1e-6, "fused second moment");
    testing::expect_relative(plain_state[0], exact, 1e-6, "plain parameter");
  }
}

// A parameter's rate is the common one times its own, for the update and the decay.
TEST(AdamW, RatesOfParameters) {
  for (const bool fused : {true, false}) {
    const auto step = fused ? adamw_step : plain::adamw_step;
    const at::Tensor gradient = randn({33}, 1, at::kFloat), start = randn({33}, 2, at::kFloat);
    const at::Tensor scaled = start.clone(), slower = start.clone(), other = start.clone();
    const auto zeros = [] { return at::zeros({33}); };
    step({.lr = 0.25}, {{gradient, scaled, zeros(), zeros(), 0.5, 0.125}, {gradient, other, zeros(), zeros(), 0.5}});
    step({.lr = 0.25 * 0.125}, {{gradient, slower, zeros(), zeros(), 0.5}});
    testing::expect_same_bits(scaled, slower, "an eighth of the rate");
    EXPECT_GT(testing::largest_difference(scaled, other), 0.1);
  }
}

// Moments that lie otherwise than their parameter.
TEST(AdamW, HowTensorsLieInMemoryDoesNotMatter) {
  const AdamWArguments a{.lr = 3e-3, .applied_steps = 2};
  for (size_t strided = 0; strided < 4; ++strided) {
    std::vector<at::Tensor> dense, other;
    for (size_t i = 0; i < 4; ++i) {
      dense.push_back(randn({5, 7}, i + 1, at::kFloat).abs());
      other.push_back(i == strided ? dense[i].t().clone(at::MemoryFormat::Contiguous).t() : dense[i].clone());
    }
    adamw_step(a, {{dense[0], dense[1], dense[2], dense[3], 0.1}});
    adamw_step(a, {{other[0], other[1], other[2], other[3], 0.1}});
    for (size_t i = 1; i < 4; ++i) testing::expect_relative(other[i], dense[i], 1e-6, std::to_string(strided));
  }
}

// The square of 1e-4 is no number of float16, and a first step divides by its root.
TEST(AdamW, HalfTypesAreComputedInFloat) {
  const AdamWArguments a{.lr = 0.01, .eps = 1e-8};
  for (const auto type : {at::kHalf, at::kBFloat16}) {
    const at::Tensor gradient = at::full({3}, 1e-4, type);
    const at::Tensor parameter = at::ones({3}, type);
    adamw_step(a, {{gradient, parameter, at::zeros({3}, type), at::zeros({3}, type), 0}});
    testing::expect_relative(parameter, at::full({3}, 0.99), 1.0 / 256, "one step of the learning rate");
  }
}

TEST(AdamW, WrongTensorsAreRefused) {
  const at::Tensor good = at::ones({3, 2});
  for (const at::Tensor& bad : {at::ones({2, 3}), at::ones({3, 2}, at::kDouble), at::ones({3, 2}, at::kMeta),
                                at::ones({6}), at::Tensor(), at::ones({3, 2}).to_sparse()}) {
    for (size_t place = bad.defined() ? 0 : 1; place < 4; ++place) {  // without a gradient there is no step
      std::vector<at::Tensor> t(4, good);
      t[place] = bad;
      try {
        adamw_step({.lr = 1}, {{t[0], t[1], t[2], t[3], 0}});
        FAIL() << place << " was taken";
      } catch (const UsageError& error) {
        EXPECT_TRUE(std::string(error.what()).starts_with("siamese::adamw_step: ")) << error.what();
      }
    }
  }
  EXPECT_THROW(adamw_step({.lr = 1, .applied_steps = 0}, {}), UsageError);
  EXPECT_THROW(adamw_step({.lr = 1, .beta1 = 1}, {}), UsageError);
}

}  // namespace
}  // namespace siamese::ops
