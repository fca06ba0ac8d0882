// The data island of the page: one JSON text, curves bucketed (downsample.h), numbers rounded, missing ones null.
// assets/data.js reads it; the names of the fields are the contract between the two.
#pragma once

#include <string>
#include <vector>

#include "siamese/report/aggregate.h"
#include "siamese/report/comparison.h"
#include "siamese/report/reader.h"

namespace siamese::report {

// ASCII only, and without '<': it may stand inside <script> as it is.
std::string page_data(const Collection& collection, const std::vector<ResultGroup>& groups,
                      const std::vector<FamilyComparison>& comparisons = {});

}  // namespace siamese::report
