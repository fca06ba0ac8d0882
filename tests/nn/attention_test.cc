#include "siamese/nn/attention.h"

#include "tests/support/tensors.h"

namespace siamese::nn {
namespace {

using testing::randn;

constexpr int64_t kBatch = 2;
constexpr int64_t kTokens = 5;
constexpr int64_t kWidth = 12;
constexpr int64_t kHeads = 6;
constexpr int64_t kKvHeads = 2;
constexpr int64_t kHeadDim = 2;

struct Case {
  explicit Case(AttentionNorm norm, at::ScalarType type = at::kDouble)
      : parameters(3, type),
        attention(Scope(parameters), {kWidth, kHeads, kKvHeads, false, false, 1e-5}, norm,
                  Initializer({.std = 0.5}, kWidth, 1), 0, {}) {
    const c10::NoGradGuard no_grad;
    uint64_t seed = 30;
    for (const auto& parameter : parameters.list()) {
      if (parameter.kind == ParameterKind::norm)
        parameter.value.copy_(1 + 0.5 * randn(parameter.value.sizes(), ++seed));
    }
  }
  at::Tensor weight(const std::string& name) const { return parameters.find(name)->value.detach().to(at::kDouble); }

  Parameters parameters;
  Attention attention;
};

at::Tensor rms(const at::Tensor& x, const at::Tensor& gain) {
  return x / ((x * x).mean(-1, true) + 1e-5).sqrt() * gain;
}

// One head of one sample at a time: norms, rotation, causal softmax, written with loops.
at::Tensor by_hand(const Case& sample, AttentionNorm norm, const at::Tensor& x, double theta) {
  at::Tensor qkv = x.matmul(sample.weight("qkv.weight").t());
  at::Tensor q = qkv.slice(2, 0, kWidth);
  at::Tensor k = qkv.slice(2, kWidth, kWidth + kKvHeads * kHeadDim);
  at::Tensor v = qkv.slice(2, kWidth + kKvHeads * kHeadDim);
  if (norm == AttentionNorm::qk_full) {
    q = rms(q, sample.weight("q_norm.weight"));
    k = rms(k, sample.weight("k_norm.weight"));
  }
  const at::Tensor mixed = at::zeros({kBatch, kTokens, kWidth}, at::kDouble);
  for (int64_t b = 0; b < kBatch; ++b) {
    for (int64_t h = 0; h < kHeads; ++h) {
      const int64_t g = h * kKvHeads / kHeads;
      at::Tensor qh = q[b].slice(1, h * kHeadDim, (h + 1) * kHeadDim);
      at::Tensor kh = k[b].slice(1, g * kHeadDim, (g + 1) * kHeadDim);
      at::Tensor vh = v[b].slice(1, g * kHeadDim, (g + 1) * kHeadDim);
      if (norm == AttentionNorm::qk || norm == AttentionNorm::qkv) {
        qh = rms(qh, sample.weight("q_norm.weight"));
        kh = rms(kh, sample.weight("k_norm.weight"));
      }
      if (norm == AttentionNorm::qkv) vh = rms(vh, sample.weight("v_norm.weight"));
      const auto rotated = [theta](const at::Tensor& head) {
        const at::Tensor out = head.clone();
        for (int64_t t = 0; t < kTokens; ++t) {
          for (int64_t j = 0; j < kHeadDim / 2; ++j) {
            const double angle = static_cast<double>(t) * std::pow(theta, -2.0 * static_cast<double>(j) / kHeadDim);
            const double c = head[t][j].item<double>();
            const double s = head[t][j + kHeadDim / 2].item<double>();
            out[t][j] = c * std::cos(angle) - s * std::sin(angle);
            out[t][j + kHeadDim / 2] = s * std::cos(angle) + c * std::sin(angle);
          }
        }
        return out;
      };
      qh = rotated(qh);
      kh = rotated(kh);
      for (int64_t t = 0; t < kTokens; ++t) {
        const at::Tensor scores = kh.slice(0, 0, t + 1).matmul(qh[t]) / std::sqrt(static_cast<double>(kHeadDim));
        const at::Tensor shares = scores.exp() / scores.exp().sum();
        mixed[b][t].slice(0, h * kHeadDim, (h + 1) * kHeadDim).copy_(shares.matmul(vh.slice(0, 0, t + 1)));
      }
    }
  }
  return mixed.matmul(sample.weight("out.weight").t());
}

TEST(Attention, EqualsTheFormulaForEveryNorm) {
  const Rotary rotary(kTokens, kHeadDim, 100.0, at::kDouble);
  const RotaryTables tables = rotary.at(0, kTokens, at::kDouble);
  for (const AttentionNorm norm :
       {AttentionNorm::none, AttentionNorm::qk, AttentionNorm::qk_full, AttentionNorm::qkv}) {
    const Case sample(norm);
    const at::Tensor x = randn({kBatch, kTokens, kWidth}, 1);
    testing::expect_relative(sample.attention(x, &tables), by_hand(sample, norm, x, 100.0), 1e-11,
                             std::string(enum_text(norm)));
  }
}

// In float the op between the projections is the fused one.
TEST(Attention, FusedEqualsTheFormulaForEveryNorm) {
  const Rotary rotary(kTokens, kHeadDim, 100.0, at::kFloat);
  const RotaryTables tables = rotary.at(0, kTokens, at::kFloat);
  for (const AttentionNorm norm :
       {AttentionNorm::none, AttentionNorm::qk, AttentionNorm::qk_full, AttentionNorm::qkv}) {
    const Case sample(norm, at::kFloat);
    const at::Tensor x = randn({kBatch, kTokens, kWidth}, 1, at::kFloat);
    testing::expect_relative(sample.attention(x, &tables), by_hand(sample, norm, x.to(at::kDouble), 100.0), 3e-6,
                             std::string(enum_text(norm)));
  }
}

TEST(Attention, NormsHaveTheirWidths) {
  EXPECT_EQ(Case(AttentionNorm::none).parameters.list().size(), 2U);
  EXPECT_EQ(Case(AttentionNorm::qk).weight("k_norm.weight").numel(), kHeadDim);
  EXPECT_EQ(Case(AttentionNorm::qk_full).weight("q_norm.weight").numel(), kWidth);
  EXPECT_EQ(Case(AttentionNorm::qk_full).weight("k_norm.weight").numel(), kKvHeads * kHeadDim);
  EXPECT_EQ(Case(AttentionNorm::qkv).weight("v_norm.weight").numel(), kHeadDim);
}

TEST(Rotary, EachSequenceHasItsOwnPositions) {
  const Rotary rotary(6, kHeadDim, 100.0, at::kFloat), longer(20, kHeadDim, 100.0, at::kFloat);
  const RotaryTables each = rotary.at_each({4, 0, 18}, 2, at::kFloat);
  for (const auto& [sequence, position] : {std::pair{0, 4}, {1, 0}, {2, 18}}) {
    const RotaryTables alone = longer.at(position, 2, at::kFloat);
    const bool known = position + 2 <= 6;  // the rest was computed by another cos
    for (const auto& [got, wanted] : {std::pair{each.cos[sequence], alone.cos}, {each.sin[sequence], alone.sin}}) {
      testing::expect_relative(got, wanted, known ? 0 : 1e-7, "at " + std::to_string(position));
    }
  }
}

// One token at a time, and in two chunks, against all at once.
TEST(Attention, CachedEqualsUncached) {
  const Rotary rotary(kTokens, kHeadDim, 100.0, at::kDouble);
  const c10::NoGradGuard no_grad;
  const Case sample(AttentionNorm::qkv);
  const at::Tensor x = randn({kBatch, kTokens, kWidth}, 1);
  const RotaryTables all = rotary.at(0, kTokens, at::kDouble);
  const at::Tensor whole = sample.attention(x, &all);
  for (const std::vector<int64_t>& chunks : {std::vector<int64_t>{1, 1, 1, 1, 1}, std::vector<int64_t>{2, 3}}) {
    KeyValues cache{at::zeros({kBatch, kKvHeads, kTokens, kHeadDim}, at::kDouble),
                    at::zeros({kBatch, kKvHeads, kTokens, kHeadDim}, at::kDouble)};
    std::vector<at::Tensor> parts;
    int64_t past = 0;
    for (const int64_t count : chunks) {
      const RotaryTables tables = rotary.at(past, count, at::kDouble);
      const std::vector<int64_t> before(kBatch, past);
      parts.push_back(sample.attention(x.narrow(1, past, count), &tables, before, &cache));
      past += count;
    }
    testing::expect_relative(at::cat(parts, 1), whole, 1e-12, "cached");
  }
}

}  // namespace
}  // namespace siamese::nn
