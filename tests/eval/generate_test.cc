#include "siamese/eval/generate.h"

#include <set>

#include "tests/models/small_lm.h"

#include "siamese/base/check.h"

namespace siamese::eval {
namespace {

std::vector<int64_t> generated(const models::LanguageModel& model, const std::vector<int64_t>& prompt,
                               const Sampling& sampling) {
  std::vector<int64_t> tokens;
  generate(model, prompt, sampling, [&](int64_t token) {
    tokens.push_back(token);
    return true;
  });
  return tokens;
}

TEST(Generate, GreedyEqualsArgmaxWithoutCache) {
  const c10::NoGradGuard no_grad;
  for (const auto& scheme : testing::all_schemes()) {
    const auto model = models::make_lm(models::small_config(scheme), 3);
    const std::vector<int64_t> prompt = {1, 5, 2};
    std::vector<int64_t> text = prompt;
    for (int i = 0; i < 8; ++i) {
      const at::Tensor tokens = at::tensor(text, at::kLong).unsqueeze(0);
      text.push_back(model->logits(model->hidden(tokens))[0][-1].argmax().item<int64_t>());
    }
    const auto made = generated(*model, prompt, {.max_tokens = 8});
    EXPECT_EQ(made, std::vector<int64_t>(text.begin() + 3, text.end())) << scheme;
  }
}

TEST(Generate, StopsWhenTheContextIsFullOrTheCallerSaysSo) {
  const auto model = models::make_lm(models::small_config("siamese"));
  // Context 12: the token after the 12th position is the last that can be known.
  EXPECT_EQ(generated(*model, {1, 2, 3}, {.max_tokens = 100}).size(), 10U);
  int seen = 0;
  generate(*model, {1}, {.max_tokens = 100}, [&](int64_t) { return ++seen < 4; });
  EXPECT_EQ(seen, 4);
}

TEST(Generate, RefusesImpossiblePrompts) {
  const auto model = models::make_lm(models::small_config("pre"));
  EXPECT_THROW(generated(*model, {}, {}), UsageError);
  EXPECT_THROW(generated(*model, std::vector<int64_t>(13, 1), {}), UsageError);
  EXPECT_THROW(generated(*model, {19}, {}), UsageError);
  EXPECT_THROW(generated(*model, {-1}, {}), UsageError);
  EXPECT_THROW(generated(*model, {1}, {.temperature = std::nan("")}), UsageError);
  EXPECT_THROW(generated(*model, {1}, {.top_p = std::nan("")}), UsageError);
  EXPECT_EQ(generated(*model, std::vector<int64_t>(12, 1), {}).size(), 1U);
}

TEST(Generate, SamplingFollowsTheProbabilities) {
  const std::vector<double> logits = {std::log(0.5), std::log(0.3), std::log(0.15), std::log(0.05)};
  std::vector<int> counts(4);
  const int draws = 20000;
  for (int i = 0; i < draws; ++i) {
    ++counts[static_cast<size_t>(sample_token(logits, {.temperature = 1, .seed = 3}, static_cast<uint64_t>(i)))];
  }
  EXPECT_NEAR(counts[0], 0.5 * draws, 4 * std::sqrt(0.25 * draws));
  EXPECT_NEAR(counts[3], 0.05 * draws, 4 * std::sqrt(0.05 * draws));
}

TEST(Generate, TopKAndTopPCutTheTail) {
  const std::vector<double> logits = {std::log(0.3), std::log(0.5), std::log(0.15), std::log(0.05)};
  std::set<int64_t> top_k;
  std::set<int64_t> top_p;
  for (uint64_t i = 0; i < 2000; ++i) {
    top_k.insert(sample_token(logits, {.temperature = 1, .top_k = 2, .seed = 1}, i));
    top_p.insert(sample_token(logits, {.temperature = 1, .top_p = 0.85, .seed = 1}, i));
  }
  EXPECT_EQ(top_k, (std::set<int64_t>{0, 1}));
  EXPECT_EQ(top_p, (std::set<int64_t>{0, 1, 2}));
  EXPECT_EQ(sample_token(logits, {.temperature = 1, .top_p = 1e-9}, 5), 1);
  EXPECT_EQ(sample_token(logits, {}, 5), 1);
}

TEST(Generate, TheSeedDecides) {
  const auto model = models::make_lm(models::small_config("siamese"));
  const Sampling hot{.max_tokens = 9, .temperature = 2, .seed = 1};
  EXPECT_EQ(generated(*model, {1}, hot), generated(*model, {1}, hot));
  EXPECT_NE(generated(*model, {1}, hot), generated(*model, {1}, {.max_tokens = 9, .temperature = 2, .seed = 2}));
}

}  // namespace
}  // namespace siamese::eval
