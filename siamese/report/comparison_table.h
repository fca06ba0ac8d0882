// The variants at their best rates as a Markdown table, and what the seeds can tell.
#pragma once

#include <string>
#include <vector>

#include "siamese/report/aggregate.h"
#include "siamese/report/comparison.h"

namespace siamese::report {

// "" for fewer than two variants. `groups`: those the comparison was made of.
std::string comparison_markdown(const FamilyComparison& comparison, const std::vector<ResultGroup>& groups);

// What the comparisons with the reference are corrected for, and how far the clearest of them must be to be beyond
// noise: t(0.05 / comparisons, n - 1) / sqrt(n) standard deviations of its differences, by Holm's first step.
std::string resolution_sentence(const FamilyComparison& comparison);

// "Of all 28 pairs of variants, corrected for as many, 3 differ beyond noise: ..."; "" where nothing can be said.
std::string pairs_sentence(const FamilyComparison& comparison);

}  // namespace siamese::report
