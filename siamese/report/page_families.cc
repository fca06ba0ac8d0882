#include "siamese/report/page_families.h"

#include <nlohmann/json.hpp>

#include "siamese/report/base64.h"
#include "siamese/report/page_numbers.h"

namespace siamese::report {

using nlohmann::json;

json measures_object(const Measures& measures) {
  json object = json::object();
  for (const auto& [name, value] : measures) object[name] = number(value);
  return object;
}

json measures_object(const std::map<std::string, MeanSpread>& measures) {
  json object = json::object();
  for (const auto& [name, value] : measures) object[name] = spread(value);
  return object;
}

json expert_loads(const std::vector<SiteSnapshot>& snapshots) {
  json list = json::array();
  for (const SiteSnapshot& snapshot : snapshots) {
    if (snapshot.experts.empty()) continue;
    json one{{"step", snapshot.step}, {"blocks", json::array()}, {"loads", json::array()}};
    for (const ExpertRow& row : snapshot.experts) {
      one["blocks"].push_back(row.block);
      one["loads"].push_back(numbers(row.load, kDepthDigits));
    }
    list.push_back(std::move(one));
  }
  return list.empty() ? json(nullptr) : list;
}

json confusion_object(const std::vector<EvalRow>& evals) {
  for (auto row = evals.rbegin(); row != evals.rend(); ++row) {
    if (!row->confusion) continue;
    return {{"step", row->step}, {"classes", row->confusion->classes}, {"counts", row->confusion->counts}};
  }
  return nullptr;
}

json eval_object(const EvalRow& row) {
  json object = measures_object(row.measures);
  object["step"] = row.step;
  object["loss"] = number(row.loss);
  object["accuracy"] = number(row.accuracy());
  for (const runs::HeldOutSetRecord& set : row.sets) {
    object["sets"].push_back({set.name, number(set.loss), number(set.perplexity), number(set.bits_per_byte)});
  }
  for (const runs::TaskRecord& task : row.tasks) {
    object["tasks"].push_back({task.name, task.primary, number(task.primary_value()), task.documents});
  }
  for (const runs::PromptRecord& made : row.prompts) object["prompts"].push_back({made.prompt, made.text});
  if (!row.samples) return object;
  object["samples"] = {{"count", row.samples->count},
                       {"steps", row.samples->steps},
                       {"guidance", number(row.samples->guidance)},
                       {"sampler", row.samples->sampler},
                       {"classifier", row.samples->classifier}};
  if (!row.samples->png.empty()) object["samples"]["grid"] = "data:image/png;base64," + base64(row.samples->png);
  return object;
}

}  // namespace siamese::report
