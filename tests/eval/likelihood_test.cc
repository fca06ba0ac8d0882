#include "siamese/eval/likelihood.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/models/small_lm.h"

#include <ATen/ATen.h>

namespace siamese::eval {
namespace {

constexpr int64_t kContext = 12;

models::ModelConfig config_of(models::Positions positions, int64_t context = kContext) {
  models::ModelConfig config = models::small_config("siamese");
  config.context = context;
  config.positions = positions;
  return config;
}

// The definition: one query alone, no cache, the softmax written out.
double by_hand(const models::LanguageModel& model, const Query& query) {
  const c10::NoGradGuard no_grad;
  const auto count = static_cast<int64_t>(query.tokens.size());
  const at::Tensor tokens = at::tensor(query.tokens, at::kLong).unsqueeze(0);
  const at::Tensor logits = model.logits(model.hidden(tokens.narrow(1, 0, count - 1)))[0].to(at::kDouble);
  double sum = 0;
  for (int64_t at = count - query.scored; at < count; ++at) {
    double total = 0;
    for (int64_t v = 0; v < logits.size(1); ++v) total += std::exp(logits[at - 1][v].item<double>());
    sum += logits[at - 1][query.tokens[static_cast<size_t>(at)]].item<double>() - std::log(total);
  }
  return sum;
}

std::vector<int64_t> some_tokens(int64_t count, uint64_t seed) {
  std::vector<int64_t> tokens;
  for (int64_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<int64_t>(random_below(19, seed, 3, static_cast<uint64_t>(i))));
  }
  return tokens;
}

// Groups whose queries begin alike, of all lengths: `common` tokens for all, then those of the group.
std::vector<QueryGroup> some_groups(int64_t common, int64_t groups, int64_t context) {
  std::vector<QueryGroup> all;
  const auto first = some_tokens(common, 1);
  for (int64_t g = 0; g < groups; ++g) {
    auto beginning = first;
    const auto own = some_tokens(1 + g % 5, 10 + static_cast<uint64_t>(g));
    beginning.insert(beginning.end(), own.begin(), own.end());
    auto& group = all.emplace_back();
    for (int64_t choice = 0; choice < 1 + g % 4; ++choice) {
      const auto end = some_tokens(1 + (g + choice * 3) % 5, 100 + static_cast<uint64_t>(g * 10 + choice));
      group.push_back(*make_query(beginning, end, context));
    }
  }
  return all;
}

void expect_by_hand(const models::LanguageModel& model, const std::vector<QueryGroup>& groups, double tolerance) {
  const LikelihoodScorer scorer(model, groups);
  std::set<size_t> seen;
  for (const auto& batch : batches_of(groups, model.config().context)) {
    const auto scores = scorer.score(batch);
    ASSERT_EQ(scores.size(), batch.size());
    for (size_t i = 0; i < batch.size(); ++i) {
      EXPECT_TRUE(seen.insert(batch[i]).second);
      ASSERT_EQ(scores[i].size(), groups[batch[i]].size());
      for (size_t q = 0; q < scores[i].size(); ++q) {
        EXPECT_NEAR(scores[i][q], by_hand(model, groups[batch[i]][q]), tolerance) << batch[i] << ", " << q;
      }
    }
  }
  EXPECT_EQ(seen.size(), groups.size());
}

TEST(Likelihood, EqualsTheSoftmaxWrittenOut) {
  for (const auto positions : {models::Positions::rope, models::Positions::learned}) {
    const auto exact = models::make_lm(config_of(positions), 3, at::kDouble);
    const auto fused = models::make_lm(config_of(positions), 3);
    for (const int64_t common : {0, 1, 3}) {
      expect_by_hand(*exact, some_groups(common, 23, kContext), 1e-10);
      expect_by_hand(*fused, some_groups(common, 23, kContext), 2e-5);
    }
  }
}

// Cut from the left, all in one batch with others that are not: they do not share the beginning of the others.
TEST(Likelihood, OfQueriesThatWereCut) {
  const auto model = models::make_lm(config_of(models::Positions::rope), 5, at::kDouble);
  std::vector<QueryGroup> groups = some_groups(6, 20, kContext);
  EXPECT_TRUE(std::any_of(groups.begin(), groups.end(), [](const QueryGroup& group) {
    return std::any_of(group.begin(), group.end(), [](const Query& query) { return query.tokens.size() == 13; });
  }));
  expect_by_hand(*model, groups, 1e-10);
}

TEST(Likelihood, DoesNotDependOnWhatElseIsAsked) {
  const auto model = models::make_lm(config_of(models::Positions::rope, 300), 7);
  const auto groups = some_groups(200, 40, 300);  // several batches
  const auto batches = batches_of(groups, 300);
  EXPECT_GT(batches.size(), 2U);
  const LikelihoodScorer together(*model, groups);
  for (const auto& batch : batches) {
    const auto scores = together.score(batch);
    for (size_t i = 0; i < batch.size(); ++i) {
      const std::vector<QueryGroup> alone = {groups[batch[i]]};
      const auto own = LikelihoodScorer(*model, alone).score({0});
      for (size_t q = 0; q < own[0].size(); ++q) EXPECT_NEAR(scores[i][q], own[0][q], 1e-5);
    }
  }
}

TEST(Likelihood, BatchesFitTheContext) {
  std::vector<QueryGroup> groups;
  // A long question with a short answer beside a short one with a long answer.
  for (int64_t g = 0; g < 12; ++g) {
    const int64_t question = g % 2 == 0 ? 10 : 2;
    groups.push_back({*make_query(some_tokens(question, 50 + static_cast<uint64_t>(g)),
                                  some_tokens(12 - question, 80 + static_cast<uint64_t>(g)), kContext)});
  }
  expect_by_hand(*models::make_lm(config_of(models::Positions::learned), 2, at::kDouble), groups, 1e-10);
}

TEST(Likelihood, TheContextIsCutFromItsLeft) {
  const std::vector<int64_t> context = {1, 2, 3, 4, 5}, end = {6, 7};
  EXPECT_EQ(make_query(context, end, 100)->tokens, (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(make_query(context, end, 6)->tokens, (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7}));  // 7 is never read
  EXPECT_EQ(make_query(context, end, 5)->tokens, (std::vector<int64_t>{2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(make_query(context, end, 2)->tokens, (std::vector<int64_t>{5, 6, 7}));
  EXPECT_EQ(make_query(context, end, 2)->scored, 2);
  EXPECT_FALSE(make_query(context, end, 1));
  EXPECT_FALSE(make_query({}, end, 5));
}

}  // namespace
}  // namespace siamese::eval
