#include "siamese/ops/operand.h"

#include <functional>

#include "tests/support/errors.h"
#include "tests/support/tensors.h"
#include <gtest/gtest.h>

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include "siamese/base/check.h"
#include "siamese/ops/gradient.h"
#include "siamese/ops/linear.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/modulate.h"
#include "siamese/ops/product.h"
#include "siamese/ops/released_weight.h"
#include "siamese/ops/stream_attend.h"
#include "siamese/ops/stream_mix.h"

namespace siamese::ops {
namespace {

using testing::randn;

TEST(Operand, AWeightIsRoundedOnceWhileAScopeIsOpen) {
  const at::Tensor weight = randn({4, 6}, 1, at::kFloat), x = randn({3, 6}, 2, at::kBFloat16);
  EXPECT_FALSE(weight_operand(weight, x).is_same(weight_operand(weight, x)));
  const RoundWeightsOnce once;
  const at::Tensor first = weight_operand(weight, x);
  EXPECT_TRUE(at::equal(first, weight.to(at::kBFloat16)));
  EXPECT_TRUE(first.is_same(weight_operand(weight.detach(), x))) << "the same memory through another tensor";
  EXPECT_TRUE(at::equal(weight_operand(weight.t(), x), weight.t().to(at::kBFloat16))) << "another view of it";
  EXPECT_TRUE(weight_operand(weight, weight).is_same(weight_operand(weight, weight)) ||
              at::equal(weight_operand(weight, weight), weight));
}

// Somebody else's open scope must not keep what was rounded before a step of the optimizer.
TEST(Operand, WhatAScopeRoundedEndsWithIt) {
  const at::Tensor weight = randn({4, 6}, 1, at::kFloat), x = randn({3, 6}, 2, at::kBFloat16);
  const RoundWeightsOnce of_another;
  {
    const RoundWeightsOnce of_a_step;
    weight_operand(weight, x);
  }
  weight.mul_(2);
  const RoundWeightsOnce of_the_next;
  EXPECT_TRUE(at::equal(weight_operand(weight, x), weight.to(at::kBFloat16)));
}

// Forward and backward, into a gradient that is there or into a fresh one, give the bits of the weight that is rounded.
TEST(ReleasedWeight, IsReadByItsRoundedCopy) {
  const at::Tensor x = randn({3, 6}, 1, at::kBFloat16).set_requires_grad(true);
  for (const bool in_place : {false, true}) {
    const at::Tensor whole = randn({4, 6}, 2, at::kFloat).set_requires_grad(true);
    const at::Tensor weight = whole.detach().clone().set_requires_grad(true);
    const at::Tensor rounded = weight.detach().to(at::kBFloat16);
    const ReleasedWeight released("w", weight, rounded);
    EXPECT_TRUE(weight_operand(weight, x).is_same(rounded));
    EXPECT_TRUE(weight_operand(weight.detach(), x).is_same(rounded)) << "the same storage through another tensor";
    const auto run = [&](const at::Tensor& w) {
      if (in_place) w.mutable_grad() = at::zeros_like(w);
      const GradientsInPlace scope;
      x.mutable_grad().reset();
      const at::Tensor y = ops::linear(x, w, {});
      (y * y).sum().backward();
      return std::vector<at::Tensor>{y, x.grad().clone(), w.grad()};
    };
    const auto expected = run(whole), got = run(weight);
    for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(at::equal(got[i], expected[i])) << i;
    EXPECT_EQ(weight.grad().scalar_type(), at::kFloat);
  }
}

TEST(ReleasedWeight, ItsNumbersCannotBeRead) {
  const at::Tensor weight = randn({4, 6}, 1, at::kFloat), x = randn({3, 6}, 2, at::kFloat);
  const at::Tensor row = weight.view({-1});
  {
    const ReleasedWeight released("blocks.0.w", weight, weight.to(at::kBFloat16));
    for (const auto& read :
         std::vector<std::function<void()>>{[&] { ops::linear(x, weight, {}); }, [&] { row.sum(); }}) {
      try {
        read();
        ADD_FAILURE() << "was read";
      } catch (const c10::Error& error) {
        EXPECT_NE(std::string(error.what()).find("blocks.0.w: its float32 numbers are divided among the ranks"),
                  std::string::npos)
            << error.what();
      }
    }
  }
  EXPECT_THROW(weight_operand(weight, x.to(at::kBFloat16)), c10::Error) << "nobody holds a copy any more";
}

TEST(ReleasedWeight, RefusesWhatSharesItsMemory) {
  const at::Tensor pair = randn({2, 4, 6}, 1, at::kFloat), half = pair[0].to(at::kBFloat16);
  EXPECT_THROW(ReleasedWeight("w", pair[0], half), UsageError);
  EXPECT_THROW(ReleasedWeight("w", half, half), UsageError);
  EXPECT_THROW(ReleasedWeight("w", pair, half), UsageError);
  EXPECT_GT(pair.sum().abs().item<float>(), 0) << "left as it was";
}

// Also where a library would cut the sum: parts that are rounded and then added are off by several roundings.
TEST(Operand, ALongSumIsRoundedOnce) {
  const at::Tensor x = randn({16, 40000}, 1, at::kBFloat16), w = randn({64, 40000}, 2, at::kBFloat16);
  const at::Tensor exact = at::matmul(x.to(at::kDouble), w.to(at::kDouble).t());
  const at::Tensor error = (times_transposed(x, w).to(at::kDouble) - exact).abs();
  // Half a unit of the last of 8 digits, and what float32 leaves of a sum of that many terms of about 1.
  EXPECT_TRUE((error <= 0x1p-8 * exact.abs() * 1.001 + 0.01).all().item<bool>()) << error.max();
}

TEST(Operand, OnlyBfloat16PrecisionConverts) {
  const at::Tensor wide = randn({3}, 1, at::kFloat), half = wide.to(at::kBFloat16);
  EXPECT_TRUE(to_operand(wide).is_same(wide));
  EXPECT_TRUE(from_operand(half).is_same(half)) << "a model whose parameters are bfloat16";
  const PrecisionGuard precision(Precision::bfloat16);
  EXPECT_EQ(to_operand(wide).scalar_type(), at::kBFloat16);
  EXPECT_EQ(from_operand(half).scalar_type(), at::kFloat);
  EXPECT_TRUE(to_operand(wide.to(at::kDouble)).scalar_type() == at::kDouble);
}

// An op that gives a branch's input in bfloat16: as if its result were rounded in a pass of its own, both ways.
struct HalfOutput {
  std::string what;
  std::vector<at::Tensor> leaves;
  std::function<at::Tensor(bool half)> run;
};

std::vector<HalfOutput> half_outputs() {
  std::vector<HalfOutput> all;
  auto a_leaf = [seed = uint64_t{50}](at::IntArrayRef shape) mutable {
    return testing::leaf(randn(shape, ++seed, at::kFloat));
  };
  const std::vector<at::Tensor> by = {a_leaf({2, 5, 33}), a_leaf({2, 33}), a_leaf({2, 33})};
  all.push_back({"modulate", by, [by](bool half) { return modulate(by[0], by[1], by[2], half); }});
  const at::Tensor gain = a_leaf({33}), alpha = a_leaf({1}), query = a_leaf({33});
  for (const size_t streams : {2, 6}) {  // six have no kernel that mixes
    std::vector<at::Tensor> from;
    for (size_t i = 0; i < streams; ++i) from.push_back(a_leaf({2, 5, 33}));
    const at::Tensor weights = a_leaf({2, 5, static_cast<int64_t>(streams)});
    for (const NormStep& norm : {NormStep{}, NormStep{true, false, gain, {}, 1e-5},
                                 NormStep{true, true, gain, {}, 1e-5}, NormStep{true, false, gain, {}, 0, alpha}}) {
      std::vector<at::Tensor> leaves = from;
      leaves.insert(leaves.end(), {gain, alpha, weights, query});
      const std::string what = std::to_string(streams) + (norm.pointwise() ? " dyt" : norm.present ? " norm" : "");
      all.push_back(
          {"stream_read " + what, leaves, [=](bool half) { return stream_read(from, weights, norm, half).input; }});
      all.push_back({"stream_attend " + what, leaves,
                     [=](bool half) { return stream_attend(from, from[0], query, 1e-5, norm, half).input; }});
    }
  }
  return all;
}

TEST(Operand, AHalfOutputIsTheFloatsRounded) {
  for (const Mode mode : {Mode::automatic, Mode::plain}) {
    const ModeGuard guard(mode);
    for (const HalfOutput& op : half_outputs()) {
      const at::Tensor got = op.run(true), wanted = op.run(false).to(at::kBFloat16);
      ASSERT_EQ(got.scalar_type(), at::kBFloat16) << op.what;
      testing::expect_same_bits(got, wanted, op.what);
      const auto got_gradients = testing::gradients(got, op.leaves);
      const auto wanted_gradients = testing::gradients(wanted, op.leaves);
      for (size_t i = 0; i < op.leaves.size(); ++i) {
        testing::expect_same_bits(got_gradients[i], wanted_gradients[i], op.what + " gradient " + std::to_string(i));
      }
    }
  }
}

TEST(Operand, WhatComesBackToAHalfOutputMayBeBfloat16AndNothingElse) {
  const at::Tensor x = at::ones({2, 3, 4}), scale = at::ones({2, 4});
  const auto backward = [&](const at::Tensor& dy) {
    static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("siamese::modulate_backward", "");
    torch::jit::Stack stack = {dy, x, scale, c10::List<bool>({true, true, true})};
    op.callBoxed(stack);
  };
  backward(at::ones({2, 3, 4}, at::kBFloat16));
  testing::expect_error<UsageError>([&] { backward(at::ones({2, 3, 4}, at::kHalf)); }, {"dy: expected Float", "Half"});
  testing::expect_error<UsageError>([&] { backward(at::ones({2, 3, 5}, at::kBFloat16)); }, {"dy: expected shape"});
}

}  // namespace
}  // namespace siamese::ops
