#include "siamese/ops/depth_attend.h"

#include <cmath>

#include "tests/support/errors.h"
#include "tests/support/tensors.h"

#include "siamese/ops/mode.h"

namespace siamese::ops {
namespace depth_attend_test {

using testing::leaf;
using testing::randn;

constexpr int64_t kRows = 4, kHeads = 6, kKvHeads = 2, kKeyDim = 3, kHeadDim = 5;
constexpr int kSources = 3;

struct Example {
  explicit Example(at::ScalarType dtype, double scale = 1) {
    const auto tensor = [&](std::vector<int64_t> shape, uint64_t seed) {
      return leaves.emplace_back(leaf((randn(shape, seed) * scale).to(dtype)));
    };
    q = tensor({kRows, kHeads, kKeyDim}, 1);
    for (uint64_t j = 0; j < kSources; ++j) keys.push_back(tensor({kRows, kKvHeads, kKeyDim}, 2 + j));
    for (uint64_t j = 0; j < kSources; ++j) values.push_back(tensor({kRows, kKvHeads, kHeadDim}, 20 + j));
  }
  std::vector<at::Tensor> leaves, keys, values;
  at::Tensor q;
};

// Number by number, and its gradients by the difference of two values in double.
double element(const Example& of, int64_t row, int64_t group, int64_t i) {
  const int64_t each = kHeads / kKvHeads;
  std::vector<double> scores;
  double all = 0;
  for (const at::Tensor& key : of.keys) {
    double score = 0;
    for (int64_t c = 0; c < kKeyDim; ++c) {
      double query = 0;
      for (int64_t h = group * each; h < (group + 1) * each; ++h) query += of.q[row][h][c].item<double>();
      score += query / static_cast<double>(each) * key[row][group][c].item<double>();
    }
    scores.push_back(std::exp(score / std::sqrt(static_cast<double>(kKeyDim))));
    all += scores.back();
  }
  double sum = 0;
  for (size_t j = 0; j < scores.size(); ++j) sum += scores[j] / all * of.values[j][row][group][i].item<double>();
  return sum;
}

at::Tensor by_hand(const Example& of) {
  const at::Tensor out = at::empty({kRows, kKvHeads, kHeadDim}, at::kDouble);
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t group = 0; group < kKvHeads; ++group) {
      for (int64_t i = 0; i < kHeadDim; ++i) out[row][group][i] = element(of, row, group, i);
    }
  }
  return out;
}

TEST(DepthAttend, IsItsEquation) {
  for (const Mode how : {Mode::automatic, Mode::plain}) {
    const ModeGuard guard(how);
    const Example of(at::kDouble);
    const at::Tensor made = depth_attend(of.q, of.keys, of.values);
    testing::expect_relative(made, by_hand(of), 1e-13, "forward");
    const at::Tensor weights = randn(made.sizes(), 4242);
    const auto gradients = testing::gradients(made, of.leaves);
    constexpr double kStep = 1e-5;
    for (size_t leaf = 0; leaf < of.leaves.size(); ++leaf) {
      const at::NoGradGuard no_grad;
      const at::Tensor flat = of.leaves[leaf].detach().view({-1});
      for (const int64_t at : {int64_t{0}, flat.numel() / 2, flat.numel() - 1}) {
        const double before = flat[at].item<double>();
        flat[at] = before + kStep;
        const double up = (by_hand(of) * weights).sum().item<double>();
        flat[at] = before - kStep;
        const double down = (by_hand(of) * weights).sum().item<double>();
        flat[at] = before;
        EXPECT_NEAR(gradients[leaf].view({-1})[at].item<double>(), (up - down) / (2 * kStep), 1e-7) << leaf;
      }
    }
  }
}

TEST(DepthAttend, AQueryOfZeroGivesTheMean) {
  Example of(at::kDouble);
  of.q = at::zeros_like(of.q);
  const at::Tensor mean = (of.values[0] + of.values[1] + of.values[2]) / 3;
  testing::expect_relative(depth_attend(of.q, of.keys, of.values), mean, 1e-15, "the mean");
  testing::expect_same_bits(depth_attend(of.q, {of.keys[0]}, {of.values[0]}), of.values[0], "one source is itself");
}

TEST(DepthAttend, StaysFiniteForLargeNumbers) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const Example of(dtype, 1e4);
    const at::Tensor made = depth_attend(of.q, of.keys, of.values);
    EXPECT_TRUE(at::isfinite(made).all().item<bool>());
    for (const at::Tensor& gradient : testing::gradients(made, of.leaves)) {
      EXPECT_TRUE(at::isfinite(gradient).all().item<bool>());
    }
  }
}

TEST(DepthAttend, BadArgumentsAreRefused) {
  const Example of(at::kFloat);
  using testing::expect_error;
  expect_error<UsageError>([&] { depth_attend(of.q, {}, {}); }, {"depth_attend", "keys", "at least one"});
  expect_error<UsageError>([&] { depth_attend(of.q, of.keys, {of.values[0]}); }, {"values", "as many"});
  expect_error<UsageError>([&] { depth_attend(of.q, {of.values[0]}, {of.values[0]}); }, {"keys", "expected"});
  const at::Tensor four = at::zeros({kRows, 4, kKeyDim});
  expect_error<UsageError>([&] { depth_attend(of.q, {four}, {of.values[0]}); }, {"keys", "divide those of q"});
  expect_error<UsageError>([&] { depth_attend(of.q, {of.keys[0].to(at::kDouble)}, {of.values[0]}); }, {"keys"});
}

}  // namespace depth_attend_test
}  // namespace siamese::ops
