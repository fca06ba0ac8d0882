#include "siamese/eval/generate.h"

#include <set>

#include "tests/models/small_lm.h"
#include "tests/support/schemes.h"
#include "tests/support/threads.h"

#include "siamese/base/check.h"
#include "siamese/ops/operand.h"

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
  for (const auto& scheme : testing::causal_schemes()) {
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

TEST(Generate, LearnedPositionsEndWithTheContext) {
  models::ModelConfig config = models::small_config("siamese");
  config.positions = models::Positions::learned;
  const auto model = models::make_lm(config);
  std::vector<std::vector<int64_t>> made(2);
  const auto emit = [&](size_t sequence, int64_t token) {
    made[sequence].push_back(token);
    return true;
  };
  // Context 12: the token after the 12th position is the last that can be known.
  EXPECT_EQ(generate(*model, {{1, 2, 3}, {1, 2}}, {.max_tokens = 100}, emit), Ended::context_full);
  EXPECT_EQ(made[0].size(), 10U);
  EXPECT_EQ(made[1].size(), 11U);
  EXPECT_EQ(generate(*model, {{1, 2, 3}}, {.max_tokens = 10}, emit), Ended::done);
}

TEST(Generate, RotaryPositionsSlide) {
  const auto model = models::make_lm(models::small_config("siamese"), 3);
  const auto made = generated(*model, {1, 2, 3}, {.max_tokens = 40});
  ASSERT_EQ(made.size(), 40U);
  // Up to the context nothing slides; after it each token is the likeliest one of a cache that does.
  EXPECT_EQ(generated(*model, {1, 2, 3}, {.max_tokens = 10}), std::vector<int64_t>(made.begin(), made.begin() + 10));
  const c10::NoGradGuard no_grad;
  models::LmCache cache = model->make_cache(1, 12, /*slides=*/true);
  at::Tensor next = at::tensor(std::vector<int64_t>{1, 2, 3}).unsqueeze(0);
  for (const int64_t token : made) {
    const at::Tensor state = model->hidden(next, {}, &cache);
    EXPECT_EQ(model->logits(state)[0][-1].argmax().item<int64_t>(), token);
    next = at::full({1, 1}, token, at::kLong);
  }
}

// Prompts of other lengths, past the context, drawn at random; wide enough that products are shared out.
TEST(Generate, TheSameTokensAtAnyThreadCount) {
  for (const auto precision : {ops::Precision::float32, ops::Precision::bfloat16}) {
    const ops::PrecisionGuard guard(precision);
    for (const auto& scheme : testing::causal_schemes()) {
      models::ModelConfig config = models::small_config(scheme);
      config.width = 64;
      config.ffn_width = 160;
      models::resolve(config, {});
      const auto model = models::make_lm(config, 3);
      testing::expect_same_at_any_thread_count(scheme, [&] {
        std::vector<at::Tensor> made(3);
        std::vector<std::vector<int64_t>> tokens(3);
        generate(*model, {{1, 2, 3}, {7}, {4, 4, 9, 0, 5}}, {.max_tokens = 14, .temperature = 1, .seed = 8},
                 [&](size_t sequence, int64_t token) {
                   tokens[sequence].push_back(token);
                   return true;
                 });
        for (size_t i = 0; i < 3; ++i) made[i] = at::tensor(tokens[i], at::kLong);
        return made;
      });
    }
  }
}

TEST(Generate, StopsWhenTheCallerSaysSo) {
  const auto model = models::make_lm(models::small_config("siamese"));
  int seen = 0;
  EXPECT_EQ(generate(*model, std::vector<int64_t>{1}, {.max_tokens = 100}, [&](int64_t) { return ++seen < 4; }),
            Ended::done);
  EXPECT_EQ(seen, 4);
}

// Prompts of other lengths, one of them twice, and sequences that end early: each gets what it gets alone.
TEST(Generate, SequencesOfABatchAreWhatTheyAreAlone) {
  const std::vector<std::vector<int64_t>> prompts = {{1, 2, 3}, {7}, {7}, {4, 4, 9, 0, 5}};
  const std::vector<size_t> lengths = {9, 2, 14, 5};
  for (const auto& scheme : testing::causal_schemes()) {
    const auto model = models::make_lm(models::small_config(scheme), 3);
    std::vector<std::vector<int64_t>> made(prompts.size());
    generate(*model, prompts, {.max_tokens = 14}, [&](size_t sequence, int64_t token) {
      made[sequence].push_back(token);
      return made[sequence].size() < lengths[sequence];
    });
    for (size_t i = 0; i < prompts.size(); ++i) {
      const auto alone = generated(*model, prompts[i], {.max_tokens = static_cast<int64_t>(lengths[i])});
      EXPECT_EQ(made[i], alone) << scheme << ", sequence " << i;
    }
  }
}

TEST(Generate, SamplesOfOnePromptDiffer) {
  const auto model = models::make_lm(models::small_config("siamese"));
  const Sampling hot{.max_tokens = 9, .temperature = 2, .seed = 1};
  std::vector<std::vector<int64_t>> made(3);
  generate(*model, std::vector<std::vector<int64_t>>(3, {1}), hot, [&](size_t sequence, int64_t token) {
    made[sequence].push_back(token);
    return true;
  });
  EXPECT_EQ(made[0], generated(*model, {1}, hot));
  EXPECT_NE(made[1], made[0]);
  EXPECT_NE(made[2], made[1]);
}

TEST(Generate, RefusesImpossiblePrompts) {
  const auto model = models::make_lm(models::small_config("pre"));
  EXPECT_THROW(generated(*model, {}, {}), UsageError);
  EXPECT_THROW(generated(*model, std::vector<int64_t>(13, 1), {}), UsageError);
  EXPECT_THROW(generated(*model, {19}, {}), UsageError);
  EXPECT_THROW(generated(*model, {-1}, {}), UsageError);
  EXPECT_THROW(generated(*model, {1}, {.temperature = std::nan("")}), UsageError);
  EXPECT_THROW(generated(*model, {1}, {.top_p = std::nan("")}), UsageError);
  EXPECT_EQ(generated(*model, std::vector<int64_t>(12, 1), {.max_tokens = 3}).size(), 3U);
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
