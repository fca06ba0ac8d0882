#include "siamese/ops/muon.h"

#include "tests/support/threads.h"

#include "siamese/base/check.h"

namespace siamese::ops {
namespace muon_test {

using testing::randn;

// The papers' iteration, written out in double.
at::Tensor orthogonalised(const at::Tensor& u) {
  at::Tensor x = u.to(at::kDouble);
  if (u.size(0) > u.size(1)) x = x.t();
  x = x / std::max(x.square().sum().sqrt().item<double>(), 1e-7);
  for (int i = 0; i < 5; ++i) {
    const at::Tensor gram = at::matmul(x, x.t());
    x = 3.4445 * x + at::matmul(-4.7750 * gram + 2.0315 * at::matmul(gram, gram), x);
  }
  return u.size(0) > u.size(1) ? x.t() : x;
}

struct Case {
  std::vector<int64_t> shape;
  std::vector<int64_t> rows;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {{{5, 7}, {5}},        {{33, 9}, {33}},        {{1, 6}, {1}},
                                        {{6, 1}, {6}},        {{24, 16}, {16, 4, 4}}, {{40, 17}, {20, 20}},
                                        {{3, 10, 4}, {5, 5}}, {{2, 6, 31}, {6}}};
  return all;
}

// Momentum, Nesterov, clip, decay, rate and both scales over several steps, each matrix by itself.
void expect_equation(const Case& c, MuonScale scale, at::ScalarType type, double tolerance) {
  const at::Tensor start = randn(c.shape, 1);
  at::Tensor w = start.clone(), m = at::zeros_like(w);
  const at::Tensor parameter = start.to(type).clone(), momentum = at::zeros_like(parameter);
  const double lr = 3e-2, mu = 0.9, clip = 0.7, decay = 0.1, rate = 0.5;
  for (int step = 0; step < 4; ++step) {
    const at::Tensor gradient = randn(c.shape, 10 + static_cast<uint64_t>(step)).to(type);
    muon_step({.lr = lr, .momentum = mu, .clip_scale = clip, .scale = scale},
              {{gradient, parameter, momentum, c.rows, decay, rate}});
    const at::Tensor g = gradient.to(at::kDouble) * clip;
    m = mu * m + (1 - mu) * g;
    const at::Tensor u = mu * m + (1 - mu) * g;
    w = w * (1 - lr * rate * decay);
    const int64_t cols = c.shape.back();
    const int64_t experts = c.shape.size() == 3 ? c.shape[0] : 1;
    const at::Tensor of_w = w.view({experts, -1, cols}), of_u = u.view({experts, -1, cols});
    for (int64_t expert = 0; expert < experts; ++expert) {
      int64_t first = 0;
      for (const int64_t rows : c.rows) {
        const double r = static_cast<double>(rows), k = static_cast<double>(cols);
        const double s =
            scale == MuonScale::original ? std::sqrt(std::max(1.0, r / k)) : 0.2 * std::sqrt(std::max(r, k));
        of_w[expert].narrow(0, first, rows).sub_(lr * rate * s * orthogonalised(of_u[expert].narrow(0, first, rows)));
        first += rows;
      }
    }
  }
  testing::expect_relative(parameter, w, tolerance, "parameter");
  testing::expect_relative(momentum, m, tolerance, "momentum");
}

TEST(Muon, StepsEqualTheEquationsInDouble) {
  for (const Case& c : cases()) {
    for (const MuonScale scale : {MuonScale::match_rms_adamw, MuonScale::original}) {
      SCOPED_TRACE(c10::str(at::IntArrayRef(c.shape)));
      expect_equation(c, scale, at::kDouble, 1e-11);
      expect_equation(c, scale, at::kFloat, 1e-5);
    }
  }
}

// What it is for: every direction of the update is about as long as every other.
TEST(Muon, SingularValuesComeNearOne) {
  for (const auto& [rows, cols] : {std::pair{48, 48}, std::pair{30, 90}, std::pair{90, 30}}) {
    const at::Tensor u = randn({rows, cols}, 3, at::kFloat) * 1e-3;
    const at::Tensor values = at::linalg_svdvals(newton_schulz(u).to(at::kDouble));
    EXPECT_GT(values.min().item<double>(), 0.5) << rows << " x " << cols;
    EXPECT_LT(values.max().item<double>(), 1.3) << rows << " x " << cols;
  }
}

TEST(Muon, MatricesInOneWeightDoNotSeeOneAnother) {
  const at::Tensor start = randn({24, 16}, 1, at::kFloat), gradient = randn({24, 16}, 2, at::kFloat);
  const at::Tensor whole = start.clone();
  muon_step({.lr = 0.1}, {{gradient, whole, at::zeros_like(whole), {16, 8}}});
  for (const auto& [first, rows] : {std::pair{0, 16}, std::pair{16, 8}}) {
    const at::Tensor part = start.narrow(0, first, rows).clone();
    muon_step({.lr = 0.1}, {{gradient.narrow(0, first, rows).clone(), part, at::zeros_like(part), {rows}}});
    testing::expect_same_bits(whole.narrow(0, first, rows), part, "part");
  }
  const at::Tensor together = start.clone();
  muon_step({.lr = 0.1}, {{gradient, together, at::zeros_like(together), {24}}});
  EXPECT_GT(testing::largest_difference(whole, together), 1e-3);
}

// Nothing to follow: only the decay acts, and nothing is divided by zero.
TEST(Muon, WithoutAGradientAWeightOnlyDecays) {
  const at::Tensor start = randn({4, 6}, 1, at::kFloat);
  const at::Tensor still = start.clone(), zero = start.clone();
  const at::Tensor momentum = at::zeros_like(start);
  muon_step({.lr = 0.1}, {{at::Tensor(), still, momentum, {4}, 0.5}, {at::zeros({4, 6}), zero, momentum, {4}, 0.5}});
  testing::expect_same_bits(still, start, "no gradient");
  testing::expect_relative(zero, start * 0.95, 1e-6, "gradient of zero");
}

// Small products, MKL's; products of more than 16 million multiply-adds, oneDNN's; loops that ATen shares.
TEST(Muon, TheSameBitsAtAnyNumberOfThreads) {
  for (const auto& [rows, cols] : {std::pair{7, 11}, std::pair{65, 130}, std::pair{300, 301}, std::pair{520, 190}}) {
    const at::Tensor start = randn({rows, cols}, 1, at::kFloat), gradient = randn({rows, cols}, 2, at::kFloat);
    testing::expect_same_at_any_thread_count(std::to_string(rows) + " x " + std::to_string(cols), [&] {
      const at::Tensor parameter = start.clone(), momentum = start * 0.1;
      muon_step({.lr = 0.1, .clip_scale = 0.3}, {{gradient, parameter, momentum, {rows}, 0.1}});
      return std::vector<at::Tensor>{parameter, momentum};
    });
  }
}

TEST(Muon, OperationsAreCounted) {
  // Five times X X^T, A A and B X of a 3 x 4 matrix, however it lies.
  EXPECT_EQ(newton_schulz_flops(3, 4), 5 * 2 * (3 * 3 * 4 + 3 * 3 * 3 + 3 * 3 * 4));
  EXPECT_EQ(newton_schulz_flops(4, 3), newton_schulz_flops(3, 4));
}

TEST(Muon, WrongTensorsAreRefused) {
  const auto refusal = [](const MuonArguments& arguments, const MuonTensors& tensors) -> std::string {
    try {
      muon_step(arguments, {tensors});
    } catch (const UsageError& error) {
      return error.what();
    }
    return "taken";
  };
  const at::Tensor good = at::ones({3, 2});
  for (const at::Tensor& bad : {at::ones({2, 3}), at::ones({3, 2}, at::kDouble), at::ones({3, 2}, at::kMeta),
                                at::ones({6}), at::Tensor(), at::ones({3, 2}).to_sparse()}) {
    for (size_t place = bad.defined() ? 0 : 1; place < 3; ++place) {  // without a gradient there is no step
      std::vector<at::Tensor> t(3, good);
      t[place] = bad;
      const std::string said = refusal({.lr = 1}, {t[0], t[1], t[2], {3}});
      EXPECT_TRUE(said.starts_with("siamese::muon_step: ")) << place << ": " << said;
    }
  }
  EXPECT_EQ(refusal({.lr = 1}, {good, good, good, {2}}),
            "siamese::muon_step: rows: expected matrices of 3 rows together, got 2");
  EXPECT_NE(refusal({.lr = 1}, {good, good, good, {4, -1}}), "taken");
  EXPECT_NE(refusal({.lr = 1}, {good, good, good, {}}), "taken");
  EXPECT_NE(refusal({.lr = 1, .momentum = 1}, {good, good, good, {3}}), "taken");
  const at::Tensor half = good.to(at::kBFloat16);
  EXPECT_NE(refusal({.lr = 1}, {half, half, half, {3}}), "taken");
}

}  // namespace muon_test
}  // namespace siamese::ops
