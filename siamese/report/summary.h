// The results as a Markdown table, for terminals and README.
#pragma once

#include <string>
#include <vector>

#include "siamese/report/aggregate.h"

namespace siamese::report {

std::string summary_markdown(const std::vector<ResultGroup>& groups);

}  // namespace siamese::report
