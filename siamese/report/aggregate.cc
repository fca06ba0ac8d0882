#include "siamese/report/aggregate.h"

#include <algorithm>
#include <cmath>
#include <map>
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
  std::vector<double> speeds;
  for (size_t index : group.runs) {
    group.finished += runs[index].state == RunState::finished;
    group.diverged += runs[index].state == RunState::diverged;
    const double speed = runs[index].median_tokens_per_s();
    if (std::isfinite(speed)) speeds.push_back(speed);
  }
  group.partial = group.finished == 0 && group.diverged < group.runs.size();
  group.tokens_per_s = median(std::move(speeds));

  std::vector<double> val, train, accuracy;
  for (size_t index : averaged_runs(runs, group)) {
    val.push_back(runs[index].final_val_loss());
    train.push_back(runs[index].final_train_loss());
    accuracy.push_back(runs[index].final_accuracy());
    if (const EvalRow* row = runs[index].last_accuracy()) pool(row->groups, group.accuracy_groups);
  }
  group.val_loss = mean_spread(val);
  group.train_loss = mean_spread(train);
  group.accuracy = mean_spread(accuracy);
}

bool same_lr(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

}  // namespace

std::vector<ResultGroup> group_results(const std::vector<RunRecord>& runs) {
  std::vector<ResultGroup> groups;
  std::map<std::string, size_t> variant_order;
  for (size_t index = 0; index < runs.size(); ++index) {
    const RunRecord& run = runs[index];
    variant_order.emplace(run.variant, variant_order.size());
    auto group = std::find_if(groups.begin(), groups.end(), [&](const ResultGroup& candidate) {
      return candidate.variant == run.variant && same_lr(candidate.lr, run.lr);
    });
    if (group == groups.end()) {
      groups.emplace_back();
      group = groups.end() - 1;
      group->variant = run.variant;
      group->lr = run.lr;
    }
    group->runs.push_back(index);
  }
  // A missing learning rate sorts last: NaN itself has no order.
  const auto lr_key = [](const ResultGroup& group) { return std::isnan(group.lr) ? HUGE_VAL : group.lr; };
  std::stable_sort(groups.begin(), groups.end(), [&](const ResultGroup& a, const ResultGroup& b) {
    return std::pair(variant_order[a.variant], lr_key(a)) < std::pair(variant_order[b.variant], lr_key(b));
  });
  for (ResultGroup& group : groups) {
    std::stable_sort(group.runs.begin(), group.runs.end(),
                     [&](size_t a, size_t b) { return runs[a].seed < runs[b].seed; });
    summarise(runs, group);
  }
  return groups;
}

}  // namespace siamese::report
