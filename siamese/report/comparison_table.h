// The variants at their best rates as a Markdown table, and one sentence about all pairs.
#pragma once

#include <string>
#include <vector>

#include "siamese/report/aggregate.h"
#include "siamese/report/comparison.h"

namespace siamese::report {

// "" for fewer than two variants. `groups`: those the comparison was made of.
std::string comparison_markdown(const FamilyComparison& comparison, const std::vector<ResultGroup>& groups);

// "Of 28 pairs of variants 3 differ beyond noise: ...".
std::string pairs_sentence(const FamilyComparison& comparison);

}  // namespace siamese::report
