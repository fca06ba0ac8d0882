#include "siamese/report/config_difference.h"

#include <algorithm>
#include <unordered_map>

namespace siamese::report {

std::vector<ConfigDifference> config_differences(const std::vector<RunRecord>& runs) {
  std::vector<ConfigDifference> keys;
  std::unordered_map<std::string, size_t> place;
  std::vector<std::vector<bool>> present;
  for (size_t run = 0; run < runs.size(); ++run) {
    for (const auto& [key, value] : runs[run].config) {
      const auto [found, added] = place.emplace(key, keys.size());
      if (added) {
        keys.push_back({key, std::vector<std::string>(runs.size())});
        present.emplace_back(runs.size(), false);
      }
      keys[found->second].values[run] = value;
      present[found->second][run] = true;
    }
  }
  std::vector<ConfigDifference> different;
  for (size_t at = 0; at < keys.size(); ++at) {
    const std::string* first = nullptr;
    bool differs = false, held = false, lacking = false;
    for (size_t run = 0; run < runs.size(); ++run) {
      if (runs[run].config.empty()) continue;
      held = held || present[at][run];
      lacking = lacking || (!present[at][run] && !runs[run].recorded);  // a record line never has engine.* keys
      if (!present[at][run]) continue;
      if (first && *first != keys[at].values[run]) differs = true;
      first = &keys[at].values[run];
    }
    if (differs || (held && lacking)) different.push_back(std::move(keys[at]));
  }
  return different;
}

}  // namespace siamese::report
