#include "siamese/report/aggregate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

namespace siamese::report {

namespace {

std::vector<size_t> averaged_runs(const std::vector<RunRecord>& runs, const ResultGroup& group) {
  std::vector<size_t> chosen;
  for (size_t index : group.runs) {
    const RunState state = runs[index].state;
    if (group.partial ? state != RunState::diverged : state == RunState::finished) chosen.push_back(index);
  }
  return chosen;
}

void pool(const std::vector<AccuracyGroup>& from, std::vector<AccuracyGroup>& into) {
  for (const AccuracyGroup& group : from) {
    const auto same = std::find_if(into.begin(), into.end(), [&](const AccuracyGroup& other) {
      return other.operation == group.operation && other.digits == group.digits;
    });
    if (same == into.end()) {
      into.push_back(group);
    } else {
      same->correct += group.correct;
      same->count += group.count;
    }
  }
}

void summarise(const std::vector<RunRecord>& runs, ResultGroup& group) {
  std::vector<double> tokens, samples;
  std::vector<PerStep> steps;
  const auto keep = [](double speed, std::vector<double>& speeds) {
    if (std::isfinite(speed)) speeds.push_back(speed);
  };
  for (size_t index : group.runs) {
    group.finished += runs[index].state == RunState::finished;
    group.diverged += runs[index].state == RunState::diverged;
    group.stuck += runs[index].stuck;
    group.average_weights += runs[index].judges_average();
    group.judged += runs[index].state == RunState::finished && std::isfinite(runs[index].progress);
    steps.push_back(per_step(runs[index]));
    keep(runs[index].median_tokens_per_s(), tokens);
    keep(runs[index].median_samples_per_s(), samples);
  }
  group.partial = group.finished == 0 && group.diverged < group.runs.size();
  group.tokens_per_s = median(std::move(tokens));
  group.samples_per_s = median(std::move(samples));
  group.per_step = median_per_step(steps);
  group.averaged = averaged_runs(runs, group);

  std::vector<double> val, train, accuracy;
  std::map<std::string, std::vector<double>> measures;
  for (size_t index : group.averaged) {
    val.push_back(runs[index].final_val_loss());
    train.push_back(runs[index].final_train_loss());
    accuracy.push_back(runs[index].final_accuracy());
    for (const auto& [name, value] : runs[index].final_measures()) measures[name].push_back(value);
    if (const EvalRow* row = runs[index].last_accuracy()) pool(row->groups, group.accuracy_groups);
  }
  group.val_loss = mean_spread(val);
  group.train_loss = mean_spread(train);
  group.accuracy = mean_spread(accuracy);
  for (const auto& [name, values] : measures) group.measures[name] = mean_spread(values);
}

bool same_lr(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// Losses of one family lie within a factor of a few; one that broke without becoming infinite does not.
void mark_outliers(const std::vector<RunRecord>& runs, std::vector<ResultGroup>& groups) {
  std::map<std::string, std::vector<double>> losses;
  std::map<std::string, double> baselines;
  for (const ResultGroup& group : groups) {
    if (std::isfinite(group.val_loss.mean)) losses[group.family].push_back(group.val_loss.mean);
    for (const size_t index : group.runs) {
      const double baseline = runs[index].baseline();
      if (std::isfinite(baseline)) baselines[group.family] = std::max(baselines[group.family], baseline);
    }
  }
  for (ResultGroup& group : groups) {
    const auto baseline = baselines.find(group.family);
    const double usual = baseline != baselines.end() ? baseline->second : median(losses[group.family]);
    group.outlier = group.val_loss.mean > kOutlierFactor * usual;
  }
}

}  // namespace

std::vector<ResultGroup> group_results(const std::vector<RunRecord>& runs) {
  std::vector<ResultGroup> groups;
  std::map<std::string, size_t> family_order, variant_order;
  for (size_t index = 0; index < runs.size(); ++index) {
    const RunRecord& run = runs[index];
    family_order.emplace(run.family, family_order.size());
    variant_order.emplace(run.variant, variant_order.size());
    auto group = std::find_if(groups.begin(), groups.end(), [&](const ResultGroup& candidate) {
      return candidate.family == run.family && candidate.variant == run.variant && same_lr(candidate.lr, run.lr);
    });
    if (group == groups.end()) {
      groups.emplace_back();
      group = groups.end() - 1;
      group->family = run.family;
      group->variant = run.variant;
      group->lr = run.lr;
    }
    group->runs.push_back(index);
    group->other_build = group->other_build || run.other_build;
  }
  // A missing learning rate sorts last: NaN itself has no order.
  const auto lr_key = [](const ResultGroup& group) { return std::isnan(group.lr) ? HUGE_VAL : group.lr; };
  const auto place = [&](const ResultGroup& group) {
    return std::tuple(family_order[group.family], variant_order[group.variant], lr_key(group));
  };
  std::stable_sort(groups.begin(), groups.end(),
                   [&](const ResultGroup& a, const ResultGroup& b) { return place(a) < place(b); });
  for (ResultGroup& group : groups) {
    std::stable_sort(group.runs.begin(), group.runs.end(),
                     [&](size_t a, size_t b) { return runs[a].seed < runs[b].seed; });
    summarise(runs, group);
  }
  mark_outliers(runs, groups);
  return groups;
}

std::vector<std::vector<ResultGroup>> split_by_family(const std::vector<ResultGroup>& groups) {
  std::vector<std::vector<ResultGroup>> families;
  for (const ResultGroup& group : groups) {
    if (families.empty() || families.back().front().family != group.family) families.emplace_back();
    families.back().push_back(group);
  }
  return families;
}

}  // namespace siamese::report
