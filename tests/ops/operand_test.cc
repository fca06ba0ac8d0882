#include "siamese/ops/operand.h"

#include <functional>

#include "tests/support/tensors.h"
#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include "siamese/base/check.h"
#include "siamese/ops/gradient.h"
#include "siamese/ops/linear.h"
#include "siamese/ops/product.h"
#include "siamese/ops/released_weight.h"

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

}  // namespace
}  // namespace siamese::ops
