// What single families write into the data island: measures (all), loads of experts (moe), confusion matrix (vit),
// sample grids (dit). null, or no key, where a run has none.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "siamese/report/run_record.h"
#include "siamese/report/statistics.h"

namespace siamese::report {

nlohmann::json measures_object(const Measures& measures);
nlohmann::json measures_object(const std::map<std::string, MeanSpread>& measures);

// [{step, blocks: [index], loads: [[share per expert] per block]}]
nlohmann::json expert_loads(const std::vector<SiteSnapshot>& snapshots);

// {step, classes, counts} of the newest evaluation that has one.
nlohmann::json confusion_object(const std::vector<EvalRow>& evals);

// One evaluation: step, loss, accuracy, its measures by name, `sets` [[name, loss, perplexity, bits per byte]], `tasks`
// [[name, metric, value, documents]], `prompts` [[prompt, text]], and `samples` with the picture as a data: address.
nlohmann::json eval_object(const EvalRow& row);

}  // namespace siamese::report
