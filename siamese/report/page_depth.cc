#include "siamese/report/page_depth.h"

#include <algorithm>
#include <string>

#include <nlohmann/json.hpp>

#include "siamese/report/page_numbers.h"

namespace siamese::report {

using nlohmann::json;

json depth_profiles(const std::vector<SiteSnapshot>& snapshots) {
  std::vector<std::string> names;
  const SiteSnapshot* widest = nullptr;
  for (const SiteSnapshot& snapshot : snapshots) {
    if (snapshot.sites.empty()) continue;
    if (!widest || snapshot.sites.size() > widest->sites.size()) widest = &snapshot;
    for (const SiteRow& site : snapshot.sites) {
      for (const StreamRms& stream : site.streams) {
        if (std::find(names.begin(), names.end(), stream.name) == names.end()) names.push_back(stream.name);
      }
    }
  }
  if (!widest) return nullptr;
  json object{{"steps", json::array()}, {"sites", json::array()}, {"streams", names}, {"rows", json::array()}};
  for (const SiteRow& site : widest->sites) object["sites"].push_back({{"block", site.block}, {"kind", site.kind}});
  for (const SiteSnapshot& snapshot : snapshots) {
    const size_t count = snapshot.sites.size();
    if (count == 0) continue;
    std::vector<double> grad(count), in(count), out(count);
    std::vector<std::vector<double>> before(names.size(), std::vector<double>(count, kMissing)), after = before;
    for (size_t at = 0; at < count; ++at) {
      const SiteRow& site = snapshot.sites[at];
      grad[at] = site.grad_norm;
      in[at] = site.branch_in;
      out[at] = site.branch_out;
      for (const StreamRms& stream : site.streams) {
        const auto name = static_cast<size_t>(std::find(names.begin(), names.end(), stream.name) - names.begin());
        before[name][at] = stream.before;
        after[name][at] = stream.after;
      }
    }
    json row{{"grad", numbers(grad, kDepthDigits)},
             {"in", numbers(in, kDepthDigits)},
             {"out", numbers(out, kDepthDigits)},
             {"before", json::array()},
             {"after", json::array()}};
    for (const auto& column : before) row["before"].push_back(numbers(column, kDepthDigits));
    for (const auto& column : after) row["after"].push_back(numbers(column, kDepthDigits));
    object["steps"].push_back(snapshot.step);
    object["rows"].push_back(std::move(row));
  }
  return object;
}

}  // namespace siamese::report
