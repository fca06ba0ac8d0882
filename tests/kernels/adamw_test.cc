#include "siamese/kernels/adamw.h"

#include <limits>

#include "tests/kernels/kernel_testing.h"

#include "siamese/kernels/reference/adamw.h"

namespace siamese::kernels {
namespace {

SIAMESE_AT_EVERY_SIMD_LEVEL(AdamW);

AdamWStep step_at(int t) {
  AdamWStep step{.lr = 3e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 0.1, .clip_scale = 0.7};
  step.bias1 = 1 - std::pow(step.beta1, t);
  step.bias2 = 1 - std::pow(step.beta2, t);
  return step;
}

struct State {
  explicit State(int64_t size)
      : g(random_floats(size, "g")),
        p(random_floats(size, "p")),
        m(random_floats(size, "m")),
        v(random_floats(size, "v")) {
    for (float& value : v) value *= value;
  }
  void update(const AdamWStep& step, int64_t begin, int64_t end) {
    adamw_update(step, g.data(), p.data(), m.data(), v.data(), begin, end);
  }
  std::vector<float> g, p, m, v;
};

TEST_P(AdamW, EqualsTheReference) {
  for (int64_t size : kWidths) {
    for (int t : {1, 10, 10000}) {
      const AdamWStep step = step_at(t);
      State state(size);
      const std::vector<double> g = widen(state.g), p0 = widen(state.p), m0 = widen(state.m), v0 = widen(state.v);
      std::vector<double> p = p0, m = m0, v = v0;
      reference::adamw_update(step, g.data(), p.data(), m.data(), v.data(), size);
      state.update(step, 0, size);

      // Roundings counted along the formula: 4 on each term of m, 6 on v (all of one sign); on p 3 for the decay, and
      // on the update what m and v bring (half of v's, under the root) and 8 more: rate, root, its scale, eps, two
      // sums, quotient.
      std::vector<double> m_bound(size), v_bound(size), p_bound(size);
      for (int64_t i = 0; i < size; ++i) {
        m_bound[i] = 4 * kUlp * (step.beta1 * std::abs(m0[i]) + (1 - step.beta1) * std::abs(step.clip_scale * g[i]));
        v_bound[i] = 6 * kUlp * v[i];
        const double scale = step.lr / step.bias1 / (std::sqrt(v[i] / step.bias2) + step.eps);
        p_bound[i] = 3 * kUlp * std::abs(p0[i]) + scale * (m_bound[i] + 11 * kUlp * std::abs(m[i]));
      }
      const std::string what = std::to_string(size) + " at step " + std::to_string(t);
      expect_within(state.m, m, m_bound, "m " + what);
      expect_within(state.v, v, v_bound, "v " + what);
      expect_within(state.p, p, p_bound, "p " + what);
    }
  }
}

TEST_P(AdamW, AnyPartitionGivesTheSameBits) {
  constexpr int64_t kSize = 1000;
  const AdamWStep step = step_at(5);
  State whole(kSize);
  whole.update(step, 0, kSize);
  for (int64_t length : {1, 3, 16, 17, 250, 999}) {
    State split(kSize);
    for (int64_t begin = 0; begin < kSize; begin += length) split.update(step, begin, std::min(begin + length, kSize));
    EXPECT_TRUE(same_bits(whole.p, split.p)) << length;
    EXPECT_TRUE(same_bits(whole.m, split.m)) << length;
    EXPECT_TRUE(same_bits(whole.v, split.v)) << length;
  }
}

TEST_P(AdamW, LeavesTheRestAlone) {
  for (int64_t end : kWidths) {
    State state(1100);
    const State before = state;
    state.update(step_at(1), 3, 3 + end);
    for (int64_t i : {int64_t{0}, int64_t{1}, int64_t{2}, 3 + end, 4 + end, 20 + end}) {
      EXPECT_EQ(state.p[i], before.p[i]) << i;
      EXPECT_EQ(state.m[i], before.m[i]) << i;
      EXPECT_EQ(state.v[i], before.v[i]) << i;
    }
    EXPECT_NE(state.p[2 + end], before.p[2 + end]);
    EXPECT_TRUE(same_bits(state.g, before.g));
  }
}

TEST_P(AdamW, ZeroGradientOnFreshStateOnlyDecays) {
  State state(33);
  const std::vector<float> before = state.p;
  for (std::vector<float>* zeros : {&state.g, &state.m, &state.v}) std::fill(zeros->begin(), zeros->end(), 0.0f);
  const AdamWStep step = step_at(1);
  state.update(step, 0, 33);
  for (size_t i = 0; i < 33; ++i) {
    EXPECT_EQ(state.p[i], before[i] * static_cast<float>(1 - step.lr * step.weight_decay));
    EXPECT_EQ(state.m[i], 0);
    EXPECT_EQ(state.v[i], 0);
  }
}

TEST_P(AdamW, NanStaysInItsElement) {
  State clean(37), broken(37);
  broken.g[35] = std::numeric_limits<float>::quiet_NaN();
  clean.update(step_at(2), 0, 37);
  broken.update(step_at(2), 0, 37);
  for (size_t i = 0; i < 37; ++i) {
    if (i == 35) {
      EXPECT_TRUE(std::isnan(broken.p[i]) && std::isnan(broken.m[i]) && std::isnan(broken.v[i]));
    } else {
      EXPECT_EQ(broken.p[i], clean.p[i]) << i;
    }
  }
}

}  // namespace
}  // namespace siamese::kernels
