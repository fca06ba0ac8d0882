#include "siamese/ops/attention.h"

#include <algorithm>
#include <limits>

#include "tests/support/recorded_ops.h"
#include "tests/support/tensors.h"

#include <ATen/Parallel.h>

#include "siamese/base/check.h"
#include "siamese/kernels/simd.h"
#include "siamese/ops/mode.h"

namespace siamese::ops {
namespace attention_test {

using testing::gradients;
using testing::leaf;
using testing::randn;

struct Shape {
  int64_t batch, tokens, heads, kv_heads, head_dim;
  bool causal, rope, qk_norm, v_norm;
};

const Shape kShapes[] = {
    {2, 7, 4, 2, 20, true, true, true, true},     {1, 130, 2, 1, 32, true, true, true, false},
    {2, 33, 3, 3, 33, false, false, false, true}, {1, 65, 2, 2, 64, true, false, false, false},
    {3, 1, 2, 1, 8, true, true, true, true},      {1, 70, 4, 4, 80, false, true, true, true},
};

// qkv and the gains that are there, as leaves, and the arguments with them.
struct Case {
  Case(const Shape& shape, at::ScalarType type) {
    arguments.heads = shape.heads;
    arguments.kv_heads = shape.kv_heads;
    arguments.causal = shape.causal;
    arguments.eps = 1e-5;
    // Numbers that float holds exactly, so that both types see the same.
    const auto numbers = [type](at::IntArrayRef sizes, uint64_t seed) {
      return leaf((randn(sizes, seed) + 0.2).to(at::kFloat).to(type));
    };
    const int64_t width = (shape.heads + 2 * shape.kv_heads) * shape.head_dim;
    inputs.push_back(numbers({shape.batch, shape.tokens, width}, 1));
    if (shape.qk_norm) inputs.push_back(arguments.q_gain = numbers({shape.head_dim}, 2));
    if (shape.qk_norm) inputs.push_back(arguments.k_gain = numbers({shape.head_dim}, 3));
    if (shape.v_norm) inputs.push_back(arguments.v_gain = numbers({shape.head_dim}, 4));
    if (!shape.rope) return;
    const at::Tensor angles = randn({shape.tokens, 1, shape.head_dim / 2}, 5) * 3;
    arguments.cos = angles.cos().to(at::kFloat).to(type);
    arguments.sin = angles.sin().to(at::kFloat).to(type);
  }

  std::vector<at::Tensor> inputs;
  AttentionArguments arguments;
};

// A score is off by a few roundings of its size, which is absolute in an exponent; gradients sum over rows besides.
constexpr double kTolerance = 5e-6;

TEST(AttentionOp, FusedEqualsPlainInDoubleForwardAndEveryGradient) {
  const ModeGuard fused(Mode::fused);
  for (const int64_t target : kernels::simd_targets()) {
    kernels::force_simd_target(target);
    int index = 0;
    for (const Shape& shape : kShapes) {
      const Case single(shape, at::kFloat), exact(shape, at::kDouble);
      const at::Tensor y = attention(single.inputs[0], single.arguments);
      const at::Tensor expected = plain::attention(exact.inputs[0], exact.arguments);
      const std::string what = kernels::simd_name(target) + " shape " + std::to_string(index++);
      testing::expect_relative(y, expected, kTolerance, what);
      const auto got = gradients(y, single.inputs);
      const auto wanted = gradients(expected, exact.inputs);
      // Of one token a softmax is 1: what comes back to the gains of q and k is 0, as a sum of what d_qkv is made of.
      const double terms = shape.tokens == 1 ? testing::largest(wanted[0]) : 0;
      for (size_t i = 0; i < got.size(); ++i) {
        testing::expect_relative(got[i], wanted[i], kTolerance, what + " gradient " + std::to_string(i), terms);
      }
    }
  }
  kernels::force_simd_target(0);
}

TEST(AttentionOp, SameBitsAtAnyThreadCount) {
  const int before = at::get_num_threads();
  const ModeGuard fused(Mode::fused);
  std::vector<std::vector<at::Tensor>> results;
  for (const int threads : {1, 2, 3, 5}) {
    at::set_num_threads(threads);
    const Case sample({3, 50, 4, 2, 24, true, true, true, true}, at::kFloat);
    const at::Tensor y = attention(sample.inputs[0], sample.arguments);
    auto all = gradients(y, sample.inputs);
    all.push_back(y);
    results.push_back(all);
  }
  at::set_num_threads(before);
  for (size_t run = 1; run < results.size(); ++run) {
    for (size_t i = 0; i < results[0].size(); ++i) testing::expect_same_bits(results[run][i], results[0][i], "threads");
  }
}

TEST(AttentionOp, StridedInputsAndGradients) {
  const ModeGuard fused(Mode::fused);
  const Case sample({2, 9, 2, 1, 16, true, true, true, true}, at::kFloat);
  const at::Tensor base = leaf(sample.inputs[0].detach().transpose(0, 1).contiguous());
  const at::Tensor y = attention(base.transpose(0, 1), sample.arguments).transpose(1, 2);
  const at::Tensor wanted = attention(sample.inputs[0], sample.arguments).transpose(1, 2);
  testing::expect_same_bits(y, wanted, "strided");
  testing::expect_same_bits(gradients(y, {base})[0].transpose(0, 1), gradients(wanted, sample.inputs)[0], "gradient");
}

// A gain that is a constant, and a qkv that is one.
TEST(AttentionOp, OnlySomeInputsNeedGradients) {
  const ModeGuard fused(Mode::fused);
  const Shape shape{1, 9, 2, 1, 16, true, true, true, true};
  const Case all(shape, at::kFloat);
  const auto wanted = gradients(attention(all.inputs[0], all.arguments), all.inputs);
  for (size_t kept = 0; kept < all.inputs.size(); ++kept) {
    const Case some(shape, at::kFloat);
    for (size_t i = 0; i < some.inputs.size(); ++i) some.inputs[i].set_requires_grad(i == kept);
    const auto got = gradients(attention(some.inputs[0], some.arguments), {some.inputs[kept]});
    testing::expect_same_bits(got[0], wanted[kept], "input " + std::to_string(kept));
  }
}

// Only our own backward reads the log sum exp. LibTorch's attention does not give it away, and the scores are not made
// a second time for nobody: the plain path says that there is none, and our backward does not take that for a number.
TEST(AttentionOp, PlainMakesItsScoresOnce) {
  const Case single({2, 9, 4, 2, 16, true, true, true, true}, at::kFloat);
  const AttentionArguments& a = single.arguments;
  const at::Tensor y = [&] {
    const ModeGuard plain(Mode::plain);
    const testing::RecordedOps recorded;
    const at::Tensor made = attention(single.inputs[0], a);
    const auto count = [&](const std::string& name) {
      return std::count_if(recorded.list().begin(), recorded.list().end(),
                           [&](const auto& op) { return op.name == name; });
    };
    EXPECT_EQ(count("aten::scaled_dot_product_attention"), 1);
    EXPECT_EQ(count("aten::logsumexp"), 0);
    return made;
  }();
  const ModeGuard fused(Mode::fused);
  EXPECT_FALSE(gradients(y, single.inputs)[0].isfinite().all().item<bool>());
}

TEST(AttentionOp, RefusesImpossibleHeads) {
  const at::Tensor qkv = at::ones({1, 3, 24});
  const auto refused = [&](AttentionArguments arguments, const std::string& what) {
    try {
      attention(qkv, arguments);
      ADD_FAILURE() << what << " was taken";
    } catch (const UsageError& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with("siamese::attention: " + what + ": expected")) << error.what();
    }
  };
  refused({.heads = 2, .kv_heads = 0}, "kv_heads");
  refused({.heads = 0, .kv_heads = 1}, "heads");
  refused({.heads = 3, .kv_heads = 2}, "heads");
  refused({.heads = 3, .kv_heads = 1, .cos = at::ones({3, 1, 2})}, "qkv");
  refused({.heads = 2, .kv_heads = 1, .cos = at::ones({3, 1, 3})}, "sin");
  refused({.heads = 2, .kv_heads = 1, .cos = at::ones({3, 1, 2}), .sin = at::ones({3, 1, 3})}, "cos");
  refused({.heads = 6, .kv_heads = 1, .cos = at::ones({3, 1, 1}), .sin = at::ones({3, 1, 1})}, "qkv");
}

}  // namespace attention_test
}  // namespace siamese::ops
