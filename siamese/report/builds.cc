#include "siamese/report/builds.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace siamese::report {

namespace {

using Counts = std::vector<std::pair<std::string, size_t>>;

std::string maker_of(const RunRecord& run) {
  std::string text;
  for (const runs::Build& build : run.builds) text += (text.empty() ? "" : ", then ") + build.text();
  return text.empty() ? "a build that is not known" : text;
}

// Most runs first; of equals the one that comes first.
Counts makers_of(const Collection& collection) {
  Counts counts;
  for (const RunRecord& run : collection.runs) {
    if (run.state == RunState::not_started) continue;
    const std::string maker = maker_of(run);
    const auto known =
        std::find_if(counts.begin(), counts.end(), [&](const auto& entry) { return entry.first == maker; });
    if (known == counts.end()) {
      counts.emplace_back(maker, 1);
    } else {
      ++known->second;
    }
  }
  std::stable_sort(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return counts;
}

std::string runs_text(size_t count) { return fmt::format("{} {}", count, count == 1 ? "run" : "runs"); }

}  // namespace

void mark_builds(Collection& collection) {
  const Counts makers = makers_of(collection);
  for (RunRecord& run : collection.runs) {
    run.other_build = makers.size() > 1 && run.state != RunState::not_started && maker_of(run) != makers.front().first;
  }
}

std::string builds_note(const Collection& collection) {
  const Counts makers = makers_of(collection);
  if (makers.size() < 2) return "";
  std::string others;
  for (size_t at = 1; at < makers.size(); ++at) {
    others += fmt::format("{}{} ({})", at > 1 ? "; " : "", makers[at].first, runs_text(makers[at].second));
  }
  return fmt::format("^ not all by one build: {} ({}); marked: {}", makers.front().first,
                     runs_text(makers.front().second), others);
}

}  // namespace siamese::report
