#include "siamese/ops/expert_feed_forward.h"

#include "tests/support/experts.h"
#include "tests/support/recorded_ops.h"
#include "tests/support/tensors.h"

#include <ATen/Parallel.h>

#include "siamese/base/check.h"
#include "siamese/ops/expert_groups.h"
#include "siamese/ops/gradient.h"
#include "siamese/ops/mode.h"

namespace siamese::ops {
namespace expert_feed_forward_test {

using testing::leaf;
using testing::randn;

struct Case {
  Activation kind;
  int64_t rows, width, hidden, experts, per_row;
  std::string text() const {
    std::string text = std::to_string(static_cast<int>(kind));
    for (const int64_t size : {rows, width, hidden, experts, per_row}) text += " " + std::to_string(size);
    return text;
  }
};

// The `per_row` different experts of each row, in a random order; never expert `avoid`.
at::Tensor choices(const Case& of, int64_t avoid = -1) {
  at::Tensor scores = randn({of.rows, of.experts}, 6);
  if (avoid >= 0) scores.select(1, avoid).fill_(-1e9);
  return std::get<1>(scores.sort(true, 1, true)).narrow(1, 0, of.per_row).contiguous();
}

// x, weights, w_in, w_out: floats as doubles.
std::vector<at::Tensor> inputs(const Case& of) {
  const int64_t in = of.kind == Activation::swiglu ? 2 * of.hidden : of.hidden;
  std::vector<at::Tensor> list = {randn({of.rows, of.width}, 1), randn({of.rows, of.per_row}, 2),
                                  randn({of.experts, in, of.width}, 3) / std::sqrt(double(of.width)),
                                  randn({of.experts, of.width, of.hidden}, 4) / std::sqrt(double(of.hidden))};
  for (auto& tensor : list) tensor = leaf(tensor.to(at::kFloat).to(at::kDouble));
  return list;
}

std::vector<at::Tensor> singles(const std::vector<at::Tensor>& exact) {
  std::vector<at::Tensor> list;
  for (const auto& tensor : exact) list.push_back(leaf(tensor.to(at::kFloat)));
  return list;
}

at::Tensor by_token(const Case& of, const std::vector<at::Tensor>& list, const at::Tensor& chosen) {
  std::vector<std::vector<int64_t>> experts;
  std::vector<std::vector<at::Tensor>> weights;
  for (int64_t t = 0; t < of.rows; ++t) {
    experts.emplace_back();
    weights.emplace_back();
    for (int64_t r = 0; r < of.per_row; ++r) {
      experts.back().push_back(chosen[t][r].item<int64_t>());
      weights.back().push_back(list[1][t][r]);
    }
  }
  return testing::experts_by_token(of.kind, list[0], experts, weights, list[2], list[3]);
}

at::Tensor run(const Case& of, const std::vector<at::Tensor>& list, const at::Tensor& chosen) {
  return expert_feed_forward(of.kind, list[0], chosen, list[1], list[2], list[3]);
}

void expect_same(const at::Tensor& got, const std::vector<at::Tensor>& list, const at::Tensor& wanted,
                 const std::vector<at::Tensor>& exact, double tolerance, const std::string& what) {
  testing::expect_relative(got, wanted, tolerance, what);
  const auto got_gradients = testing::gradients(got, list);
  const auto wanted_gradients = testing::gradients(wanted, exact);
  for (size_t i = 0; i < list.size(); ++i) {
    const at::Tensor expected = wanted_gradients[i].defined() ? wanted_gradients[i] : at::zeros_like(exact[i]);
    testing::expect_relative(got_gradients[i], expected, tolerance, what + " gradient " + std::to_string(i));
  }
}

TEST(ExpertFeedForward, EqualsItsEquation) {
  const int before = at::get_num_threads();
  at::set_num_threads(1);  // too small to share
  for (const auto kind : {Activation::swiglu, Activation::gelu, Activation::gelu_tanh}) {
    for (const Case& of : {Case{kind, 1, 1, 1, 1, 1}, Case{kind, 13, 7, 33, 1, 1}, Case{kind, 9, 33, 5, 4, 4},
                           Case{kind, 29, 31, 17, 6, 2}}) {
      const auto exact = inputs(of);
      const auto single = singles(exact);
      const at::Tensor chosen = choices(of);
      const at::Tensor wanted = by_token(of, exact, chosen);
      expect_same(run(of, exact, chosen), exact, wanted, exact, 1e-12, "plain " + of.text());
      const ModeGuard fused(Mode::fused);
      expect_same(run(of, single, chosen), single, wanted, exact, 4e-6, "fused " + of.text());
    }
  }
  at::set_num_threads(before);
}

// More rows than a block of any expert, and more outputs than a task.
TEST(ExpertFeedForward, FusedEqualsPlainInManyBlocks) {
  const Case of{Activation::swiglu, 1201, 129, 130, 3, 2};
  const auto exact = inputs(of);
  const auto single = singles(exact);
  const at::Tensor chosen = choices(of);
  const ModeGuard fused(Mode::fused);
  const at::Tensor wanted = plain::expert_feed_forward(of.kind, exact[0], chosen, exact[1], exact[2], exact[3]);
  expect_same(run(of, single, chosen), single, wanted, exact, 4e-6, of.text());
}

TEST(ExpertFeedForward, AnExpertWithoutRowsHasNoGradient) {
  const Case of{Activation::swiglu, 11, 6, 5, 5, 2};
  const at::Tensor chosen = choices(of, 3);
  for (const auto mode : {Mode::fused, Mode::plain}) {
    const ModeGuard guard(mode);
    const auto list = singles(inputs(of));
    const auto gradients = testing::gradients(run(of, list, chosen), list);
    for (const size_t weight : {2, 3}) {
      EXPECT_EQ(testing::largest(gradients[weight][3]), 0);
      EXPECT_GT(testing::largest(gradients[weight][2]), 0);
    }
  }
}

// Nothing is as large as every expert's part of every row.
TEST(ExpertFeedForward, PlainRunsEachExpertOnItsRows) {
  const ModeGuard plain(Mode::plain);
  const Case of{Activation::swiglu, 90, 3, 4, 16, 2};
  const auto list = singles(inputs(of));
  const at::Tensor chosen = choices(of);
  const testing::RecordedOps recorded;
  testing::gradients(run(of, list, chosen), list);
  EXPECT_LE(recorded.largest_made(), of.rows * of.per_row * 2 * of.hidden);
}

TEST(ExpertFeedForward, NoRows) {
  const Case of{Activation::gelu, 0, 4, 3, 2, 1};
  for (const auto mode : {Mode::automatic, Mode::plain}) {
    const ModeGuard guard(mode);
    const auto list = singles(inputs(of));
    const at::Tensor y = run(of, list, at::empty({0, 1}, at::kLong));
    EXPECT_EQ(y.sizes(), at::IntArrayRef({0, 4}));
    const auto gradients = testing::gradients(y, list);
    EXPECT_EQ(testing::largest(gradients[2]), 0);
    EXPECT_EQ(testing::largest(gradients[3]), 0);
  }
}

TEST(ExpertFeedForward, NoHiddenLayer) {
  const Case of{Activation::gelu, 5, 4, 0, 2, 1};
  for (const auto mode : {Mode::automatic, Mode::plain}) {
    const ModeGuard guard(mode);
    const auto list = singles(inputs(of));
    const at::Tensor y = run(of, list, choices(of));
    EXPECT_EQ(testing::largest(y), 0);
    EXPECT_EQ(testing::largest(testing::gradients(y, list)[0]), 0);
  }
}

TEST(ExpertFeedForward, DoesNotDependOnThreads) {
  const int before = at::get_num_threads();
  const ModeGuard fused(Mode::fused);
  for (const Case& of : {Case{Activation::swiglu, 1024, 128, 128, 8, 2}, Case{Activation::gelu, 7, 200, 300, 1, 1},
                         Case{Activation::gelu, 100, 256, 512, 3, 2}, Case{Activation::swiglu, 600, 256, 512, 2, 1}}) {
    std::vector<at::Tensor> first;
    for (const int threads : {1, 2, 3}) {
      at::set_num_threads(threads);
      const auto list = singles(inputs(of));
      std::vector<at::Tensor> results = {run(of, list, choices(of))};
      const auto gradients = testing::gradients(results[0], list);
      results.insert(results.end(), gradients.begin(), gradients.end());
      if (first.empty()) first = results;
      for (size_t i = 0; i < results.size(); ++i) {
        testing::expect_same_bits(results[i], first[i], of.text() + ": " + std::to_string(threads) + " threads");
      }
    }
  }
  at::set_num_threads(before);
}

TEST(ExpertFeedForward, AddsToGradientsThatAreThere) {
  const ModeGuard fused(Mode::fused);
  const Case of{Activation::swiglu, 40, 7, 9, 3, 2};
  const auto list = singles(inputs(of));
  const at::Tensor chosen = choices(of, 1);
  const auto fresh = torch::autograd::grad({run(of, list, chosen).sum()}, list);
  for (const auto& tensor : list) tensor.mutable_grad() = at::ones_like(tensor.detach());
  const void* const there = list[2].grad().const_data_ptr();
  const GradientsInPlace in_place;
  run(of, list, chosen).sum().backward();
  EXPECT_EQ(list[2].grad().const_data_ptr(), there);
  for (size_t i = 0; i < list.size(); ++i) {
    testing::expect_relative(list[i].grad(), fresh[i] + 1, 1e-6, std::to_string(i));
  }
}

// A weight that is not trained gets no gradient, and the others the same as before.
TEST(ExpertFeedForward, OnlyWhatIsWanted) {
  const ModeGuard fused(Mode::fused);
  const Case of{Activation::swiglu, 12, 5, 6, 3, 2};
  const auto list = singles(inputs(of));
  const at::Tensor chosen = choices(of);
  const auto wanted = testing::gradients(run(of, list, chosen), list);
  for (size_t frozen = 0; frozen < list.size(); ++frozen) {
    auto part = list;
    part[frozen] = list[frozen].detach();
    const at::Tensor y = run(of, part, chosen);
    part.erase(part.begin() + int64_t(frozen));
    const auto got = testing::gradients(y, part);
    for (size_t i = 0; i < part.size(); ++i) {
      testing::expect_same_bits(got[i], wanted[i < frozen ? i : i + 1], std::to_string(frozen));
    }
  }
}

TEST(ExpertFeedForward, AnUnknownKindIsRefusedWithTheChoices) {
  EXPECT_THROW(activation_named("expert_feed_forward", "relu"), UsageError);
}

TEST(ExpertGroups, AnExpertThatIsNotThereIsRefused) {
  EXPECT_THROW(group_by_expert(at::tensor({0, 4}, at::kLong).view({1, 2}), 4), UsageError);
}

TEST(ExpertGroups, SortByExpertThenRow) {
  const at::Tensor chosen = at::tensor({2, 0, 0, 3, 2, 0}, at::kLong).view({3, 2});
  const ExpertGroups groups = group_by_expert(chosen, 4);
  EXPECT_TRUE(at::equal(groups.first, at::tensor({0, 3, 3, 5, 6}, at::kLong)));
  EXPECT_TRUE(at::equal(groups.source, at::tensor({0, 1, 2, 0, 2, 1}, at::kLong)));
  EXPECT_TRUE(at::equal(groups.place, at::tensor({3, 0, 1, 5, 4, 2}, at::kLong).view({3, 2})));
}

}  // namespace expert_feed_forward_test
}  // namespace siamese::ops
