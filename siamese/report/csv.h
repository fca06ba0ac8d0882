// The table of results for a spreadsheet: a header, then one row per variant and learning rate, numbers as they are,
// not rounded for people; an empty cell where there is none. RFC 4180, lines end in "\n".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "siamese/report/aggregate.h"

namespace siamese::report {

inline constexpr std::string_view kCsvStart = "family,variant,lr,";

std::string results_csv(const std::vector<ResultGroup>& groups);

}  // namespace siamese::report
