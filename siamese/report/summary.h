// The results as Markdown tables, for terminals and README.
#pragma once

#include <string>
#include <vector>

#include "siamese/report/aggregate.h"
#include "siamese/report/comparison.h"

namespace siamese::report {

// A row for each variant and learning rate; with several families a table for each, below its name. `comparisons` (as
// compare_variants has them, or none) add for each family with at least two variants a table of the variants at their
// best rates, and a sentence about all pairs.
std::string summary_markdown(const std::vector<ResultGroup>& groups,
                             const std::vector<FamilyComparison>& comparisons = {});

}  // namespace siamese::report
