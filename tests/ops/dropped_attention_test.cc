#include "siamese/ops/dropped_attention.h"

#include "tests/support/threads.h"

#include "siamese/base/check.h"
#include "siamese/ops/mode.h"

namespace siamese::ops {
namespace dropped_attention_test {

using testing::leaf;
using testing::randn;

struct Case {
  int64_t batch = 2, tokens = 7, heads = 4, kv_heads = 2, head_dim = 6;
  bool causal = true;
  bool norms = true;
  bool rotates = true;

  at::Tensor qkv(at::ScalarType type) const {
    return randn({batch, tokens, (heads + 2 * kv_heads) * head_dim}, 1, type);
  }
  at::Tensor dropped() const { return randn({batch, heads, tokens, tokens}, 2).lt(-0.3); }  // more than a third
  AttentionArguments arguments(at::ScalarType type, bool learns) const {
    AttentionArguments a{.heads = heads, .kv_heads = kv_heads, .causal = causal, .eps = 1e-5};
    const auto gain = [&](uint64_t seed) {
      const at::Tensor value = (randn({head_dim}, seed) + 2).to(type);
      return learns ? leaf(value) : value;
    };
    if (norms) {
      a.q_gain = gain(3);
      a.k_gain = gain(4);
      a.v_gain = gain(5);
    }
    if (rotates) {
      const at::Tensor angles = randn({tokens, 1, head_dim / 2}, 6);
      a.cos = angles.cos().to(type);
      a.sin = angles.sin().to(type);
    }
    return a;
  }
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {{},
                                        {.causal = false},
                                        {.kv_heads = 4, .norms = false},
                                        {.tokens = 1},
                                        {.batch = 1, .tokens = 33, .heads = 3, .kv_heads = 1, .rotates = false}};
  return all;
}

// Head by head and row by row, each weight after the softmax 0 or divided by 1 - chance.
at::Tensor by_hand(const at::Tensor& qkv, const AttentionArguments& a, const at::Tensor& dropped, double chance) {
  const int64_t head_dim = qkv.size(2) / (a.heads + 2 * a.kv_heads);
  const auto head = [&](int64_t sample, int64_t index, const at::Tensor& gain, bool rotates) {
    at::Tensor x = qkv[sample].narrow(1, index * head_dim, head_dim);
    if (gain.defined()) x = x / ((x * x).mean(-1, true) + a.eps).sqrt() * gain;
    if (!rotates || !a.cos.defined()) return x;
    const at::Tensor cos = a.cos.squeeze(1), sin = a.sin.squeeze(1);
    const at::Tensor first = x.narrow(1, 0, head_dim / 2), second = x.narrow(1, head_dim / 2, head_dim / 2);
    return at::cat({first * cos - second * sin, second * cos + first * sin}, 1);
  };
  std::vector<at::Tensor> samples;
  for (int64_t sample = 0; sample < qkv.size(0); ++sample) {
    std::vector<at::Tensor> heads;
    for (int64_t h = 0; h < a.heads; ++h) {
      const int64_t kv = h * a.kv_heads / a.heads;
      const at::Tensor q = head(sample, h, a.q_gain, true), k = head(sample, a.heads + kv, a.k_gain, true);
      const at::Tensor v = head(sample, a.heads + a.kv_heads + kv, a.v_gain, false);
      std::vector<at::Tensor> rows;
      for (int64_t i = 0; i < qkv.size(1); ++i) {
        const int64_t seen = a.causal ? i + 1 : qkv.size(1);
        const at::Tensor e = (at::matmul(k.narrow(0, 0, seen), q[i]) / std::sqrt(static_cast<double>(head_dim))).exp();
        const at::Tensor kept = dropped[sample][h][i].narrow(0, 0, seen).logical_not().to(at::kDouble);
        rows.push_back(at::matmul(e / e.sum() * kept / (1 - chance), v.narrow(0, 0, seen)));
      }
      heads.push_back(at::stack(rows));
    }
    samples.push_back(at::cat(heads, 1));
  }
  return at::stack(samples);
}

TEST(DroppedAttention, EqualsTheEquationWithItsGradients) {
  for (const Case& c : cases()) {
    const at::Tensor dropped = c.dropped();
    const auto made = [&](at::ScalarType type, bool ours) {
      const at::Tensor qkv = leaf(c.qkv(type));
      const AttentionArguments a = c.arguments(type, true);
      const at::Tensor y = ours ? dropped_attention(qkv, a, dropped, 0.4) : by_hand(qkv, a, dropped, 0.4);
      std::vector<at::Tensor> inputs = {qkv};
      if (c.norms) inputs.insert(inputs.end(), {a.q_gain, a.k_gain, a.v_gain});
      std::vector<at::Tensor> result = testing::gradients(y, inputs);
      result.push_back(y.detach());
      return result;
    };
    const auto wanted = made(at::kDouble, false), exact = made(at::kDouble, true), floats = made(at::kFloat, true);
    for (size_t i = 0; i < wanted.size(); ++i) {
      const double largest = testing::largest(wanted.front());
      testing::expect_relative(exact[i], wanted[i], 1e-11, "double " + std::to_string(i), largest);
      testing::expect_relative(floats[i], wanted[i], 2e-5, "float " + std::to_string(i), largest);
    }
  }
}

// With nothing dropped it is the attention of a pass without dropout, in bfloat16 too.
TEST(DroppedAttention, WithNothingDroppedItIsAttention) {
  for (const Case& c : cases()) {
    const at::Tensor none = at::zeros_like(c.dropped());
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      const AttentionArguments a = c.arguments(at::kFloat, false);
      const at::Tensor ours = leaf(c.qkv(type)), kernels = leaf(c.qkv(type));
      const at::Tensor y = dropped_attention(ours, a, none, 0), same = attention(kernels, a);
      EXPECT_EQ(y.scalar_type(), type);
      const double tolerance = type == at::kFloat ? 1e-5 : 0.03;
      testing::expect_relative(y, same, tolerance, "out");
      testing::expect_relative(testing::gradients(y, {ours})[0], testing::gradients(same, {kernels})[0], tolerance,
                               "gradient", testing::largest(ours));
    }
  }
}

TEST(DroppedAttention, TheSameBitsAtAnyNumberOfThreads) {
  for (const bool plain : {false, true}) {
    const ModeGuard guard(plain ? Mode::plain : Mode::automatic);
    for (const Case& c : {Case{}, Case{.batch = 3, .tokens = 130, .heads = 6, .kv_heads = 3, .head_dim = 16}}) {
      const AttentionArguments a = c.arguments(at::kFloat, false);
      const at::Tensor dropped = c.dropped();
      testing::expect_function_same_at_any_thread_count("dropped attention", {c.qkv(at::kFloat), a.q_gain, a.k_gain},
                                                        [&](const std::vector<at::Tensor>& in) {
                                                          AttentionArguments here = a;
                                                          here.q_gain = in[1];
                                                          here.k_gain = in[2];
                                                          return dropped_attention(in[0], here, dropped, 0.4);
                                                        });
    }
  }
}

TEST(DroppedAttention, WrongArgumentsAreRefused) {
  const Case c;
  const AttentionArguments a = c.arguments(at::kFloat, false);
  const at::Tensor qkv = c.qkv(at::kFloat), dropped = c.dropped();
  const auto refused = [](const auto& call) { EXPECT_THROW(call(), UsageError); };
  refused([&] { dropped_attention(qkv[0], a, dropped, 0.1); });
  refused([&] { dropped_attention(qkv, a, dropped.to(at::kFloat), 0.1); });
  refused([&] { dropped_attention(qkv, a, dropped[0], 0.1); });
  refused([&] { dropped_attention(qkv, a, {}, 0.1); });
  refused([&] { dropped_attention(qkv, a, dropped, 1); });
  AttentionArguments uneven = a;
  uneven.kv_heads = 3;
  refused([&] { dropped_attention(qkv, uneven, dropped, 0.1); });
  const at::Tensor x = leaf(qkv);
  refused([&] {
    torch::autograd::grad({dropped_attention(x, a, dropped, 0.1).sum()}, {x}, {}, std::nullopt, /*create_graph=*/true);
  });
  const ModeGuard fused(Mode::fused);
  refused([&] { dropped_attention(qkv, a, dropped, 0.1); });
}

}  // namespace dropped_attention_test
}  // namespace siamese::ops
