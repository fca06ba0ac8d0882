// What a comparison comes down to, in one sentence that claims no more than the seeds allow:
//   "siamese is 0.13 lower than pre at the best rate of each (95 % interval 0.09 to 0.17, 3 seeds); within noise of
//    span; lower than post, hybrid."
#pragma once

#include <string>
#include <vector>

#include "siamese/report/aggregate.h"
#include "siamese/report/comparison.h"

namespace siamese::report {

// About the variant with the lowest held-out loss: against the reference (the first variant of the sweep), or, when it
// is the reference itself, against the next. "" for fewer than two variants with a result.
std::string headline(const FamilyComparison& comparison, const std::vector<ResultGroup>& groups);

}  // namespace siamese::report
