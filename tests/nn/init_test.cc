#include "siamese/nn/init.h"

#include "tests/support/tensors.h"

#include "siamese/nn/attention.h"
#include "siamese/nn/feed_forward.h"

namespace siamese::nn {
namespace {

// A normal cut at 3 standard deviations has this standard deviation.
constexpr double kCutStd = 0.98658;

double measured_std(const Parameters& parameters, const std::string& name) {
  return parameters.find(name)->value.detach().std().item<double>();
}

TEST(Init, RulesGiveTheirStandardDeviations) {
  const int64_t d = 2048;
  const int64_t blocks = 16;
  const Initializer megatron({.rule = InitRule::full_megatron}, d, blocks);
  EXPECT_NEAR(megatron.embedding().std, 0.013975424859373685, 1e-12);  // the published constant for width 2048
  EXPECT_NEAR(megatron.input_projection(d, 3 * d).std, 0.013975424859373685, 1e-12);
  EXPECT_NEAR(megatron.output_projection(d, d, 3, true).std, 0.013975424859373685 / std::sqrt(32.0), 1e-12);
  EXPECT_NEAR(megatron.output_projection(d, d, 3, false).std, 0.013975424859373685, 1e-12);
  EXPECT_NEAR(megatron.head().std, 1 / std::sqrt(2048.0), 1e-12);
  const Initializer mitchell({.rule = InitRule::mitchell}, d, blocks);
  EXPECT_NEAR(mitchell.embedding().std, 1 / std::sqrt(2048.0), 1e-12);
  EXPECT_NEAR(mitchell.output_projection(8192, d, 3, true).std, 1 / std::sqrt(2.0 * 8192 * 4), 1e-12);
  const Initializer normal({.rule = InitRule::normal}, d, blocks);
  EXPECT_EQ(normal.output_projection(d, d, 3, true).std, 0.02);
  EXPECT_EQ(normal.head().std, 0.02);
  EXPECT_EQ(Initializer({.rule = InitRule::normal, .std = 0.1}, d, blocks).embedding().std, 0.1);
}

TEST(Init, AFreshWeightHasThem) {
  Parameters parameters(7);
  const Attention attention(Scope(parameters).child("a"), {64, 4, 4, false, false, 1e-5}, AttentionNorm::none,
                            Initializer({.rule = InitRule::normal}, 64, 2), 0, {.input = 0.25, .output = 0.5});
  const at::Tensor qkv = parameters.find("a.qkv.weight")->value.detach();
  EXPECT_NEAR(qkv.slice(0, 0, 128).std().item<double>(), 0.02 * kCutStd, 4e-4);
  EXPECT_NEAR(qkv.slice(0, 128, 192).std().item<double>(), 0.25 * 0.02 * kCutStd, 2e-4);  // only the value rows
  EXPECT_NEAR(measured_std(parameters, "a.out.weight"), 0.5 * 0.02 * kCutStd, 3e-4);
  EXPECT_LE(qkv.abs().max().item<double>(), 0.06 + 1e-9);  // cut at three
}

TEST(Init, FfnFactorsReachBothProjections) {
  Parameters parameters(7);
  const FeedForward ffn(Scope(parameters).child("f"), {FeedForwardKind::swiglu, 64, 128, true},
                        Initializer({.rule = InitRule::normal}, 64, 2), 0, {.input = 0.25, .output = 0.5});
  EXPECT_NEAR(measured_std(parameters, "f.in.weight"), 0.25 * 0.02 * kCutStd, 2e-4);
  EXPECT_NEAR(measured_std(parameters, "f.out.weight"), 0.5 * 0.02 * kCutStd, 3e-4);
  EXPECT_TRUE(at::equal(parameters.find("f.in.bias")->value, at::zeros({256})));
}

}  // namespace
}  // namespace siamese::nn
