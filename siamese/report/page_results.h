// Groups and comparisons as JSON: for the data island of the page and for `siamese report --json`.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "siamese/report/aggregate.h"
#include "siamese/report/comparison.h"
#include "siamese/report/reader.h"

namespace siamese::report {

nlohmann::json accuracy_groups(const std::vector<AccuracyGroup>& groups);

// One object a group. `best_rate`: its variant does best at its rate; `lowest`: and no other variant does better.
nlohmann::json groups_object(const std::vector<ResultGroup>& groups, const std::vector<FamilyComparison>& comparisons);

// One object a family with at least two variants that have a result.
nlohmann::json comparisons_object(const std::vector<ResultGroup>& groups,
                                  const std::vector<FamilyComparison>& comparisons);

// The results of a run or sweep as one line (docs/run-directory.md).
std::string results_json(const Collection& collection, const std::vector<ResultGroup>& groups,
                         const std::vector<FamilyComparison>& comparisons);

}  // namespace siamese::report
