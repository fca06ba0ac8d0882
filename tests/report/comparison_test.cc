// Paired differences, Holm, best rates, speedups: against what a pencil gives.
#include "siamese/report/comparison.h"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "siamese/report/comparison_table.h"
#include "siamese/report/page_results.h"
#include "siamese/report/paired.h"
#include "siamese/report/speedup.h"
#include "siamese/report/summary.h"

namespace siamese::report {
namespace {

using nlohmann::json;

RunRecord finished(const std::string& variant, double lr, int64_t seed, double val_loss) {
  RunRecord run;
  run.variant = variant;
  run.lr = lr;
  run.seed = seed;
  run.state = RunState::finished;
  run.evals = {{.step = 100, .loss = val_loss}};
  return run;
}

TEST(Paired, IntervalAndProbabilityByHand) {
  // Differences 1, 2, 6: mean 3, s^2 = 7, error sqrt(7 / 3); with 2 degrees of freedom p = 1 - t / sqrt(2 + t^2).
  const PairedDifference pair = paired_difference({1, 2, kMissing, 6});
  EXPECT_EQ(pair.n, 3u);
  EXPECT_DOUBLE_EQ(pair.mean, 3);
  const double error = std::sqrt(7.0 / 3), t = 3 / error;
  const double quantile = 0.95 * std::sqrt(2 / (1 - 0.95 * 0.95));
  EXPECT_NEAR(pair.low, 3 - quantile * error, 1e-10);
  EXPECT_NEAR(pair.high, 3 + quantile * error, 1e-10);
  EXPECT_NEAR(pair.p, 1 - t / std::sqrt(2 + t * t), 1e-14);
  EXPECT_EQ(pair.verdict(), "within noise");
  EXPECT_EQ(paired_difference({-1, -1.01}).verdict(), "lower");
  EXPECT_EQ(paired_difference({1, 1.01}).verdict(), "higher");
}

TEST(Paired, WhatCannotBeSaidIsNotSaid) {
  EXPECT_EQ(paired_difference({}).verdict(), "no common seed");
  const PairedDifference one = paired_difference({0.5});
  EXPECT_EQ(one.verdict(), "one seed");
  EXPECT_DOUBLE_EQ(one.mean, 0.5);
  EXPECT_TRUE(std::isnan(one.low) && std::isnan(one.p) && std::isnan(one.holm));
  EXPECT_EQ(paired_difference({0, 0}).p, 1);        // the same runs
  EXPECT_EQ(paired_difference({0.25, 0.25}).p, 0);  // the same difference: no noise at all
}

TEST(Holm, MultipliesBySmallestFirstAndNeverFalls) {
  std::vector<PairedDifference> pairs(5);
  const std::vector<double> p{0.04, 0.01, 0.03, PairedDifference::kNone, 0.02};
  std::vector<PairedDifference*> tested;
  for (size_t i = 0; i < pairs.size(); ++i) {
    pairs[i].p = p[i];
    tested.push_back(&pairs[i]);
  }
  correct_by_holm(tested);
  // Ascending: 0.01 x 4, 0.02 x 3, 0.03 x 2 -> not below 0.06, 0.04 x 1 -> not below 0.06. The missing one is no test.
  EXPECT_DOUBLE_EQ(pairs[1].holm, 0.04);
  EXPECT_DOUBLE_EQ(pairs[4].holm, 0.06);
  EXPECT_DOUBLE_EQ(pairs[2].holm, 0.06);
  EXPECT_DOUBLE_EQ(pairs[0].holm, 0.06);
  EXPECT_TRUE(std::isnan(pairs[3].holm));
  for (PairedDifference& pair : pairs) pair.p = 0.7;
  correct_by_holm(tested);
  EXPECT_EQ(pairs[0].holm, 1);
}

// Three rates of `pre`, two of `siamese`, one of `post`; seeds 1 to 3.
std::vector<RunRecord> three_variants() {
  std::vector<RunRecord> runs;
  for (int64_t seed = 1; seed <= 3; ++seed) {
    const double noise = 0.01 * static_cast<double>(seed);
    runs.push_back(finished("pre", 0.001, seed, 1.3 + noise));
    runs.push_back(finished("pre", 0.003, seed, 1.2 + noise));
    runs.push_back(finished("pre", 0.01, seed, 1.4 + noise));
    runs.push_back(finished("siamese", 0.003, seed, 1.1 + noise));
    runs.push_back(finished("siamese", 0.01, seed, 1.0 + 2 * noise));
    runs.push_back(finished("post", 0.001, seed, 1.21 - noise));
  }
  return runs;
}

TEST(Comparison, EachVariantAtItsBestRateSeedBySeed) {
  const auto runs = three_variants();
  const auto groups = group_results(runs);
  const auto families = compare_variants(runs, groups);
  ASSERT_EQ(families.size(), 1u);
  const FamilyComparison& family = families[0];
  ASSERT_EQ(family.variants.size(), 3u);
  EXPECT_EQ(family.variants[0].variant, "pre");
  EXPECT_EQ(groups[family.variants[0].group].lr, 0.003);
  EXPECT_EQ(family.variants[0].place, RatePlace::inside);
  EXPECT_EQ(family.variants[1].place, RatePlace::highest);
  EXPECT_EQ(family.variants[2].place, RatePlace::only);
  ASSERT_EQ(family.pairs.size(), 3u);
  EXPECT_EQ(family.against_reference(0), nullptr);
  const PairedDifference& siamese = *family.against_reference(1);  // -0.19, -0.18, -0.17
  EXPECT_EQ(siamese.n, 3u);
  EXPECT_NEAR(siamese.mean, -0.18, 1e-12);
  const double t = 0.18 / (0.01 / std::sqrt(3.0)), p = 1 - t / std::sqrt(2 + t * t);
  EXPECT_NEAR(siamese.p, p, 1e-12);
  const PairedDifference& post = *family.against_reference(2);  // -0.01, -0.03, -0.05
  EXPECT_NEAR(post.mean, -0.03, 1e-12);
  EXPECT_EQ(post.verdict(), "within noise");
  EXPECT_EQ(siamese.verdict(), "lower");
  EXPECT_NEAR(siamese.holm, 2 * siamese.p, 1e-12);                     // of two comparisons with pre
  EXPECT_NEAR(family.pairs[0].difference.holm, 3 * siamese.p, 1e-12);  // of three pairs
  EXPECT_NEAR(post.holm, post.p, 1e-12);
  const PairedDifference turned = family.between(0, 1);  // pre less siamese
  EXPECT_NEAR(turned.mean, 0.18, 1e-12);
  EXPECT_EQ(turned.low, -siamese.high);
  EXPECT_EQ(turned.high, -siamese.low);
  EXPECT_EQ(turned.holm, siamese.holm);
  EXPECT_EQ(family.between(2, 1).holm, family.pairs[2].difference.holm);
  EXPECT_NEAR(family.between(1, 2).mean, -0.15, 1e-12);
  EXPECT_EQ(family.between(1, 1).n, 0u);
  EXPECT_EQ(family.pairs[2].first, 2u);
  EXPECT_EQ(family.pairs[2].second, 1u);
  EXPECT_NEAR(family.pairs[2].difference.mean, 0.15, 1e-12);  // 0.18, 0.15, 0.12
}

TEST(Comparison, ARateAtWhichARunDivergedIsNotTheBest) {
  auto runs = three_variants();
  for (RunRecord& run : runs) {
    if (run.variant == "pre" && run.lr == 0.003 && run.seed == 2) run.state = RunState::diverged;
  }
  auto groups = group_results(runs);
  EXPECT_EQ(groups[compare_variants(runs, groups)[0].variants[0].group].lr, 0.001);
  for (RunRecord& run : runs) {
    if (run.variant == "pre" && run.seed == 2) run.state = RunState::diverged;
  }
  groups = group_results(runs);
  const auto families = compare_variants(runs, groups);
  EXPECT_EQ(groups[families[0].variants[0].group].lr, 0.003);  // none is left: the lowest of those that finished
  EXPECT_EQ(families[0].against_reference(1)->n, 2u);          // the seeds that both finished
}

TEST(Comparison, VariantsWithoutAResultAndOtherFamiliesAreNotCompared) {
  auto runs = three_variants();
  for (RunRecord& run : runs) {
    if (run.variant == "pre") run.state = RunState::diverged;
    if (run.variant == "post") run.family = "moe";
  }
  const auto groups = group_results(runs);
  const auto families = compare_variants(runs, groups);
  ASSERT_EQ(families.size(), 2u);
  EXPECT_EQ(families[0].variants.size(), 1u);
  EXPECT_EQ(families[0].variants[0].variant, "siamese");
  EXPECT_EQ(comparison_markdown(families[0], groups), "");
  EXPECT_TRUE(comparisons_object(groups, families).empty());
}

TEST(Comparison, InTheTable) {
  const auto runs = three_variants();
  const auto groups = group_results(runs);
  const std::string text = summary_markdown(groups, compare_variants(runs, groups));
  EXPECT_NE(text.find("Each variant at its best learning rate, against pre, seed by seed:"), std::string::npos) << text;
  EXPECT_NE(text.find("| siamese |  > 0.01 | 1.0400 +- 0.0200 |    -0.1800 | -0.2048 to -0.1552 |     3 |"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(" within noise |"), std::string::npos) << text;
  EXPECT_NE(text.find("Of all 3 pairs of variants, corrected for as many, 2 differ beyond noise: siamese is below pre; "
                      "siamese is below post."),
            std::string::npos)
      << text;
  // t(0.025, 2) / sqrt(3) = 6.2053 / 1.7321
  EXPECT_NE(text.find("p is corrected for these 2 comparisons. With 3 seeds even the clearest of them has to be 3.6 "
                      "times its standard deviation over the seeds to be beyond noise."),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("a better one may lie beyond"), std::string::npos) << text;
}

TEST(Comparison, OneRateAndOnePair) {
  std::vector<RunRecord> runs;
  for (int64_t seed = 1; seed <= 3; ++seed) {
    runs.push_back(finished("pre", 0.01, seed, 1 + 0.1 * static_cast<double>(seed)));
    runs.push_back(finished("post", 0.01, seed, 2 + 0.101 * static_cast<double>(seed)));
  }
  const auto groups = group_results(runs);
  const std::string text = summary_markdown(groups, compare_variants(runs, groups));
  EXPECT_NE(text.find("\nEach variant against pre, seed by seed:\n"), std::string::npos) << text;
  EXPECT_NE(text.find("The difference is beyond noise: pre is below post."), std::string::npos) << text;
  // t(0.05, 2) / sqrt(3) = 4.3027 / 1.7321
  EXPECT_NE(text.find("\nWith 3 seeds a difference has to be 2.5 times its standard deviation"), std::string::npos)
      << text;
  EXPECT_EQ(text.find("may lie beyond"), std::string::npos) << text;
}

TEST(Comparison, OneSeedSaysNothingOfNoise) {
  const std::vector<RunRecord> runs{finished("pre", 0.01, 1, 1), finished("post", 0.01, 1, 2)};
  const auto groups = group_results(runs);
  const std::string text = summary_markdown(groups, compare_variants(runs, groups));
  EXPECT_NE(text.find("one seed"), std::string::npos) << text;
  EXPECT_NE(text.find("What is noise against pre is not known"), std::string::npos) << text;
  EXPECT_EQ(text.find("pairs of variants"), std::string::npos) << text;
  EXPECT_EQ(text.find("all are within noise"), std::string::npos) << text;
}

TEST(Comparison, AReferenceOfOneSeedSpeaksForItselfOnly) {
  std::vector<RunRecord> runs{finished("pre", 0.01, 1, 1)};
  for (int64_t seed = 1; seed <= 3; ++seed) {
    runs.push_back(finished("post", 0.01, seed, 2 + 0.1 * static_cast<double>(seed)));
    runs.push_back(finished("span", 0.01, seed, 1.5 + 0.101 * static_cast<double>(seed)));
  }
  const auto groups = group_results(runs);
  const std::string text = summary_markdown(groups, compare_variants(runs, groups));
  EXPECT_NE(text.find("What is noise against pre is not known"), std::string::npos) << text;
  EXPECT_NE(text.find("The difference is beyond noise: span is below post."), std::string::npos) << text;
}

TEST(Comparison, AsJson) {
  const auto runs = three_variants();
  const auto groups = group_results(runs);
  const json line = json::parse(results_json({true, "demo", runs}, groups, compare_variants(runs, groups)));
  EXPECT_EQ(line["kind"], "results");
  EXPECT_EQ(line["runs"].size(), 18u);
  const json& variant = line["comparisons"][0]["variants"][1];
  EXPECT_EQ(variant["variant"], "siamese");
  EXPECT_EQ(variant["place"], "highest");
  EXPECT_EQ(variant["difference"]["n"], 3);
  EXPECT_EQ(variant["difference"]["verdict"], "lower");
  EXPECT_TRUE(line["comparisons"][0]["variants"][0]["difference"].is_null());
  EXPECT_EQ(line["comparisons"][0]["pairs"].size(), 3u);
  const size_t best = variant["group"].get<size_t>();
  EXPECT_EQ(line["groups"][best]["best_rate"], true);
  EXPECT_EQ(line["groups"][best]["lowest"], true);
  EXPECT_EQ(line["groups"][0]["best_rate"], false);
  EXPECT_DOUBLE_EQ(line["groups"][best]["val_loss"]["low"].get<double>(), 1.02);
  EXPECT_DOUBLE_EQ(line["groups"][best]["val_loss"]["high"].get<double>(), 1.06);
}

// A straight fall from `from` to `to` over `steps` steps.
RunRecord falling(const std::string& variant, int64_t seed, int64_t steps, double from, double to,
                  double tokens_per_s) {
  RunRecord run = finished(variant, 0.01, seed, to);
  for (int64_t step = 1; step <= steps; ++step) {
    run.metrics.step.push_back(step);
    run.metrics.loss.push_back(from + (to - from) * static_cast<double>(step) / static_cast<double>(steps));
    run.metrics.tokens_per_s.push_back(tokens_per_s);
  }
  run.step = steps;
  return run;
}

// The trailing mean over 20 of 400 steps of a straight line lies 9.5 steps behind it.
double behind(double from, double to) { return (from - to) * 9.5 / 400; }

TEST(Speedup, CurveIsTheTrailingMeanOverSeeds) {
  const std::vector<RunRecord> runs{falling("pre", 1, 400, 4, 2, 1000), falling("pre", 2, 400, 5, 3, 1000)};
  const LossCurve curve = loss_curve(runs, group_results(runs)[0]);
  ASSERT_EQ(curve.step.size(), 400u);
  EXPECT_EQ(curve.step.back(), 400);
  EXPECT_NEAR(curve.loss.back(), 2.5 + behind(4, 2), 1e-12);
  EXPECT_NEAR(curve.loss[0], 4.5 - 2.0 / 400, 1e-12);  // of the first step alone
}

TEST(Speedup, LastTimeThroughTheLevelBetweenPoints) {
  const LossCurve curve{{10, 20, 30, 40, 50}, {4, 2, 3, 2, 1}};
  EXPECT_DOUBLE_EQ(steps_to(curve, 2.5), 35);  // not 17.5: it rose again
  EXPECT_DOUBLE_EQ(steps_to(curve, 1), 50);
  EXPECT_DOUBLE_EQ(steps_to(curve, 5), 10);
  EXPECT_TRUE(std::isnan(steps_to(curve, 0.9)));
}

TEST(Speedup, TwiceAsFastAndHalfAsFast) {
  // `fast` falls by 4 in the steps in which `pre` falls by 2.
  const std::vector<RunRecord> runs{falling("pre", 1, 400, 4, 2, 1000), falling("fast", 1, 400, 4, 0, 800)};
  const auto groups = group_results(runs);
  const double fast = speedup(runs, groups[1], groups[0]);
  // Both curves lie behind by the same 9.5 steps: pre ends at the loss of step 390.5, which fast has at step 195.25.
  EXPECT_NEAR(fast, 400 / (195.25 + 9.5), 1e-9);
  EXPECT_NEAR(speedup(runs, groups[0], groups[1]), 1 / fast, 1e-9);  // never gets there: from the other side
  EXPECT_DOUBLE_EQ(speedup(runs, groups[0], groups[0]), 1);
  const FamilyComparison family = compare_variants(runs, groups)[0];
  EXPECT_DOUBLE_EQ(family.variants[1].training, fast);
  EXPECT_DOUBLE_EQ(family.variants[1].time, fast * 0.8);
}

// Training losses wiggle at the end: a setting that is ahead by a hair is as fast as the other, and the other as it.
TEST(Speedup, ACurveThatRisesAtItsEndGivesNobodyAnAdvantage) {
  std::vector<RunRecord> runs{falling("pre", 1, 400, 4, 2, 1000), falling("twin", 1, 400, 4, 2, 1000)};
  for (RunRecord& run : runs) {
    for (size_t at = 300; at < 400; ++at)
      run.metrics.loss[at] = 2 + 0.001 * static_cast<double>(at);  // from 2.5 to 2.3 to 2.4
  }
  for (double& loss : runs[1].metrics.loss) loss -= 1e-9;
  const auto groups = group_results(runs);
  EXPECT_NEAR(speedup(runs, groups[1], groups[0]), 1, 1e-6);
  EXPECT_NEAR(speedup(runs, groups[0], groups[1]), 1, 1e-6);
}

// A rate does not change a speed, but the hour at which it was tried may.
TEST(Speedup, AVariantIsChargedWithItsSpeedAtAllRates) {
  std::vector<RunRecord> runs{falling("pre", 1, 400, 4, 2, 1000), falling("pre", 1, 400, 4, 3, 1000),
                              falling("pre", 1, 400, 4, 3, 100), falling("post", 1, 400, 4, 2, 500)};
  runs[1].lr = 0.02;
  runs[2].lr = 0.03;
  const auto groups = group_results(runs);
  const FamilyComparison family = compare_variants(runs, groups)[0];
  EXPECT_DOUBLE_EQ(family.variants[0].speed, 1000);
  EXPECT_DOUBLE_EQ(family.variants[1].time, 0.5);
}

TEST(Speedup, CountsTokensNotSteps) {
  std::vector<RunRecord> runs{falling("pre", 1, 400, 4, 2, 1000), falling("large", 1, 400, 4, 2, 1000)};
  runs[0].config = {{"train.batch", "8"}, {"model.context", "64"}};
  runs[1].config = {{"train.batch", "16"}, {"model.context", "64"}};
  const auto groups = group_results(runs);
  EXPECT_DOUBLE_EQ(groups[1].per_step.tokens, 1024);
  EXPECT_DOUBLE_EQ(speedup(runs, groups[1], groups[0]), 0.5);
}

TEST(Speedup, WhatIsMissingIsMissing) {
  std::vector<RunRecord> runs{falling("pre", 1, 400, 4, 2, 1000), finished("post", 0.01, 1, 2)};
  const auto groups = group_results(runs);
  EXPECT_TRUE(std::isnan(speedup(runs, groups[1], groups[0])));
}

}  // namespace
}  // namespace siamese::report
