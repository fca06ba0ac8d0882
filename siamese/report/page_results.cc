#include "siamese/report/page_results.h"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "siamese/report/comparison_table.h"
#include "siamese/report/headline.h"
#include "siamese/report/page_families.h"
#include "siamese/report/page_numbers.h"
#include "siamese/report/remarks.h"

namespace siamese::report {

using nlohmann::json;

namespace {

json per_step_object(const PerStep& step) {
  return {{"samples", number(step.samples)},
          {"tokens", number(step.tokens)},
          {"flops", number(step.flops)},
          {"seconds", number(step.seconds)}};
}

json group_object(const ResultGroup& group) {
  return {{"family", group.family},
          {"variant", group.variant},
          {"lr", number(group.lr)},
          {"runs", group.runs},
          {"finished", group.finished},
          {"diverged", group.diverged},
          {"stuck", group.stuck},
          {"judged", group.judged},
          {"partial", group.partial},
          {"outlier", group.outlier},
          {"other_build", group.other_build},
          {"best_rate", false},
          {"lowest", false},
          {"per_step", per_step_object(group.per_step)},
          {"val_loss", spread(group.val_loss)},
          {"train_loss", spread(group.train_loss)},
          {"accuracy", spread(group.accuracy)},
          {"measures", measures_object(group.measures)},
          {"tokens_per_s", number(group.tokens_per_s, kCurveDigits)},
          {"samples_per_s", number(group.samples_per_s, kCurveDigits)},
          {"accuracy_groups", accuracy_groups(group.accuracy_groups)}};
}

json difference_object(const PairedDifference& difference) {
  return {{"n", difference.n},
          {"mean", number(difference.mean)},
          {"low", number(difference.low)},
          {"high", number(difference.high)},
          {"p", number(difference.p)},
          {"holm", number(difference.holm)},
          {"verdict", difference.verdict()}};
}

const char* place_text(RatePlace place) {
  constexpr std::array<const char*, 4> kTexts{"only", "inside", "lowest", "highest"};
  return kTexts[static_cast<size_t>(place)];
}

json comparison_object(const FamilyComparison& comparison, const std::vector<ResultGroup>& groups) {
  json object{{"family", comparison.family},
              {"reference", comparison.variants.front().variant},
              {"headline", headline(comparison, groups)},
              {"noise", resolution_sentence(comparison)},
              {"sentence", pairs_sentence(comparison)},
              {"variants", json::array()},
              {"pairs", json::array()}};
  for (size_t at = 0; at < comparison.variants.size(); ++at) {
    const TunedVariant& variant = comparison.variants[at];
    const PairedDifference* const difference = comparison.against_reference(at);
    object["variants"].push_back({{"variant", variant.variant},
                                  {"group", variant.group},
                                  {"lr", number(groups[variant.group].lr)},
                                  {"place", place_text(variant.place)},
                                  {"training", number(variant.training, kCurveDigits)},
                                  {"time", number(variant.time, kCurveDigits)},
                                  {"difference", difference ? difference_object(*difference) : json(nullptr)}});
  }
  for (const VariantPair& pair : comparison.pairs) {
    json one = difference_object(pair.difference);
    one["first"] = comparison.variants[pair.first].variant;
    one["second"] = comparison.variants[pair.second].variant;
    object["pairs"].push_back(std::move(one));
  }
  return object;
}

json run_object(const RunRecord& run) {
  return {{"dir", run.dir},
          {"family", run.family},
          {"variant", run.variant},
          {"scheme", run.scheme},
          {"lr", number(run.lr)},
          {"seed", run.seed < 0 ? json(nullptr) : json(run.seed)},
          {"state", state_text(run.state)},
          {"message", run.message},
          {"step", run.step},
          {"stuck", run.stuck},
          {"progress", number(run.progress)},
          {"baseline", number(run.baseline())},
          {"val_loss", number(run.final_val_loss())},
          {"train_loss", number(run.final_train_loss())},
          {"accuracy", number(run.final_accuracy())},
          {"measures", measures_object(run.final_measures())},
          {"tokens_per_s", number(run.median_tokens_per_s(), kCurveDigits)},
          {"samples_per_s", number(run.median_samples_per_s(), kCurveDigits)},
          {"seconds", number(run.seconds())}};
}

}  // namespace

json accuracy_groups(const std::vector<AccuracyGroup>& groups) {
  json list = json::array();
  for (const AccuracyGroup& group : groups) {
    list.push_back(
        {{"operation", group.operation}, {"digits", group.digits}, {"correct", group.correct}, {"count", group.count}});
  }
  return list;
}

json groups_object(const std::vector<ResultGroup>& groups, const std::vector<FamilyComparison>& comparisons) {
  json list = json::array();
  for (const ResultGroup& group : groups) list.push_back(group_object(group));
  for (const FamilyComparison& family : comparisons) {
    for (const TunedVariant& variant : family.variants) list[variant.group]["best_rate"] = true;
    if (family.variants.empty()) continue;
    const auto& best = *std::min_element(
        family.variants.begin(), family.variants.end(), [&](const TunedVariant& a, const TunedVariant& b) {
          const ResultGroup &left = groups[a.group], &right = groups[b.group];
          return left.partial != right.partial ? right.partial : left.val_loss.mean < right.val_loss.mean;
        });
    list[best.group]["lowest"] = true;
  }
  return list;
}

json comparisons_object(const std::vector<ResultGroup>& groups, const std::vector<FamilyComparison>& comparisons) {
  json list = json::array();
  for (const FamilyComparison& family : comparisons) {
    if (family.variants.size() > 1) list.push_back(comparison_object(family, groups));
  }
  return list;
}

std::string results_json(const Collection& collection, const std::vector<ResultGroup>& groups,
                         const std::vector<FamilyComparison>& comparisons) {
  json object{{"schema", 2},
              {"kind", "results"},
              {"sweep", collection.is_sweep},
              {"name", collection.name},
              {"remarks", remarks(collection)},
              {"runs", json::array()},
              {"groups", groups_object(groups, comparisons)},
              {"comparisons", comparisons_object(groups, comparisons)}};
  for (const RunRecord& run : collection.runs) object["runs"].push_back(run_object(run));
  return object.dump(-1, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace);
}

}  // namespace siamese::report
