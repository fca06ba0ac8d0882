// The results as a Markdown table, for terminals and README.
#pragma once

#include <string>
#include <vector>

#include "siamese/report/aggregate.h"

namespace siamese::report {

// One table; with several families one for each, below its name.
std::string summary_markdown(const std::vector<ResultGroup>& groups);

}  // namespace siamese::report
