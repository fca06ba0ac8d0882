#include "siamese/eval/task_metrics.h"

#include <cmath>

#include <gtest/gtest.h>

namespace siamese::eval {
namespace {

ChoiceScore choice(const char* text, double likelihood, double unconditional = runs::kNone,
                   double domain = runs::kNone) {
  ChoiceScore score = measured(text);
  score.likelihood = likelihood;
  score.unconditional = unconditional;
  score.domain = domain;
  score.tokens = 2;
  return score;
}

TEST(TaskMetrics, LengthsCountCharactersAndBytes) {
  const ChoiceScore score = measured(" caf\xC3\xA9");
  EXPECT_EQ(score.characters, 5);
  EXPECT_EQ(score.bytes, 6);
  EXPECT_EQ(score.characters_v1, 4);
  EXPECT_EQ(score.bytes_v1, 5);
  EXPECT_EQ(measured("\xC3\xA9 b").bytes_v1, 2);  // the first character is left out, whatever it is
}

// Each metric prefers another choice.
TEST(TaskMetrics, EachScoreHasItsOwnBest) {
  // l            -4     -6      -9          -10
  // characters    2      4       9 (18 b)    5
  // per char     -2     -1.5    -1          -2
  // per byte     -2     -1.5    -0.5        -2     (letters of two bytes)
  // minus alone  -1     -5      -8           3
  // by domain     4/8    6/6     9/3        10/20
  const std::vector<ChoiceScore> choices = {
      choice(" a", -4, -3, -8), choice(" abc", -6, -1, -6),
      choice("\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9", -9, -1, -3),
      choice(" abcd", -10, -13, -20)};
  const auto right = [&](int64_t label) {
    const std::vector<DocumentScore> one = {{choices, label, {}}};
    const auto numbers = task_metrics(one, true);
    std::string names;
    for (const auto& [name, value] : numbers) {
      if (value == 1 && (name == "acc" || name == "len_norm" || name == "acc_uncond" || name == "pmi_dc")) {
        names += name + " ";
      }
    }
    return names;
  };
  EXPECT_EQ(right(0), "acc ");
  EXPECT_EQ(right(1), "");
  EXPECT_EQ(right(2), "len_norm pmi_dc ");
  EXPECT_EQ(right(3), "acc_uncond ");
}

TEST(TaskMetrics, LossesAreOfTheRightChoice) {
  const std::vector<DocumentScore> documents = {{{choice(" abc", -6), choice(" x", -1)}, 0, {}},
                                                {{choice(" x", -1), choice(" yz", -3)}, 1, {}}};
  const auto numbers = task_metrics(documents, true);
  EXPECT_DOUBLE_EQ(runs::number_of(numbers, "acc"), 0);
  EXPECT_DOUBLE_EQ(runs::number_of(numbers, "ce_loss"), (6.0 / 4 + 3.0 / 3) / 2);
  EXPECT_DOUBLE_EQ(runs::number_of(numbers, "ce_loss_v1"), (6.0 / 3 + 3.0 / 2) / 2);
  EXPECT_DOUBLE_EQ(runs::number_of(numbers, "bpb"), (6.0 / 4 + 3.0 / 3) / 2 / std::log(2));
  EXPECT_TRUE(std::isnan(runs::number_of(numbers, "acc_uncond")));  // nobody asked
  EXPECT_TRUE(std::isnan(runs::number_of(numbers, "exact_match")));
  const auto likely = task_metrics(documents, false);
  EXPECT_TRUE(std::isnan(runs::number_of(likely, "acc")));
  EXPECT_TRUE(std::isfinite(runs::number_of(likely, "bpb")));
}

TEST(TaskMetrics, OfEqualChoicesTheFirst) {
  const std::vector<DocumentScore> documents = {{{choice(" x", -2), choice(" x", -2 + 1e-12)}, 0, {}}};
  EXPECT_EQ(runs::number_of(task_metrics(documents, true), "acc"), 1);
}

TEST(TaskMetrics, ExactMatchIsAShareOfTheAnswered) {
  const std::vector<DocumentScore> documents = {{{}, 0, true}, {{}, 0, false}, {{}, 0, false}, {{}, 0, {}}};
  EXPECT_DOUBLE_EQ(runs::number_of(task_metrics(documents, false), "exact_match"), 1.0 / 3);
}

TEST(TaskMetrics, WhatAnAnswerSays) {
  const auto says = [](const char* said, std::vector<std::string> answers) { return says_answer(said, answers); };
  EXPECT_TRUE(says(" signs\n", {"signs"}));
  EXPECT_FALSE(says(" sign", {"signs"}));
  EXPECT_TRUE(says("23", {"23 years", "23"}));
  EXPECT_TRUE(says("9 * 2 = 18 dollars. So the answer is $1,018.", {"1018"}));
  EXPECT_TRUE(says("so -3.5 it is.", {"-3.5"}));
  EXPECT_FALSE(says("18 and then 19", {"18"}));
  EXPECT_FALSE(says("no number", {"18"}));
  EXPECT_TRUE(says("Thus \\boxed{1} or \\boxed{\\frac{9}{7}}.", {"\\frac{9}{7}"}));
  EXPECT_FALSE(says("Thus \\boxed{\\frac{9}{7}", {"\\frac{9}{7}"}));
}

TEST(TaskMetrics, NamesOfOlmo) {
  EXPECT_EQ(metric_of_olmo("acc_per_char"), "len_norm");
  EXPECT_EQ(metric_of_olmo("bits_per_byte_corr"), "bpb");
  EXPECT_EQ(metric_of_olmo("bleu"), "");
}

}  // namespace
}  // namespace siamese::eval
