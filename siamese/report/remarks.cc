#include "siamese/report/remarks.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "siamese/base/join.h"
#include "siamese/report/builds.h"
#include "siamese/report/judgement.h"

namespace siamese::report {

namespace {

constexpr size_t kMostNamed = 5;

std::string names_of(const std::vector<std::string>& names) {
  if (names.size() <= kMostNamed) return join(names, ", ");
  const std::vector<std::string> first(names.begin(), names.begin() + kMostNamed);
  return fmt::format("{} and {} more", join(first, ", "), names.size() - kMostNamed);
}

std::string data_section(const RunRecord& run) {
  std::string text;
  for (const auto& [key, value] : run.config) {
    if (key.starts_with("data.")) text += key + "=" + value + "\n";
  }
  return text;
}

struct SameData {
  runs::DataKey key;
  std::vector<std::string> runs;
};

}  // namespace

std::string data_note(const Collection& collection) {
  std::map<std::string, std::vector<SameData>> by_section;
  for (const RunRecord& run : collection.runs) {
    if (run.data.empty()) continue;
    std::vector<SameData>& known = by_section[data_section(run)];
    const auto same = std::find_if(known.begin(), known.end(), [&](const SameData& of) { return of.key == run.data; });
    if (same == known.end()) {
      known.push_back({run.data, {run.dir}});
    } else {
      same->runs.push_back(run.dir);
    }
  }
  std::vector<std::string> others;
  for (auto& [section, known] : by_section) {
    std::stable_sort(known.begin(), known.end(),
                     [](const SameData& a, const SameData& b) { return a.runs.size() > b.runs.size(); });
    for (size_t at = 1; at < known.size(); ++at) {
      others.insert(others.end(), known[at].runs.begin(), known[at].runs.end());
    }
  }
  if (others.empty()) return "";
  return fmt::format(
      "not all from the same data: where their configs name the same files, these held something else for {}: {}",
      others.size() == 1 ? "one run" : fmt::format("{} runs", others.size()), names_of(others));
}

std::string targets_note(const Collection& collection) {
  std::vector<std::string> families;
  for (const RunRecord& run : collection.runs) {
    if (std::find(families.begin(), families.end(), run.family) == families.end()) families.push_back(run.family);
  }
  std::vector<std::string> lines;
  for (const std::string& family : families) {
    const std::vector<HeldOutTask> tasks = tasks_of(collection.runs, family);
    if (tasks.size() < 2) continue;
    std::vector<std::string> parts;
    for (const HeldOutTask& task : tasks) {
      std::vector<std::string> names;
      for (const RunRecord& run : collection.runs) {
        if (is_judged_on(run, task)) names.push_back(run.dir);
      }
      parts.push_back(fmt::format("{:.4f} for {}", task.baseline, names_of(names)));
    }
    lines.push_back(
        fmt::format("not all judged on the same held-out targets, so that losses of {} are not comparable: the best "
                    "constant prediction has a loss of {}",
                    family, join(parts, "; ")));
  }
  return join(lines, "; ");
}

std::vector<std::string> remarks(const Collection& collection) {
  std::vector<std::string> lines;
  for (std::string note : {targets_note(collection), builds_note(collection), data_note(collection)}) {
    if (!note.empty()) lines.push_back(std::move(note));
  }
  for (const RunRecord& run : collection.runs) {
    if (!run.damaged || run.state == RunState::running) continue;  // a run that goes on may be writing its last line
    lines.push_back(fmt::format("{}: not read whole: {}", run.dir, join(run.notes, "; ")));
  }
  return lines;
}

}  // namespace siamese::report
