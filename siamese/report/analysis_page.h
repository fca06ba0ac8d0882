// analysis.html: one analysis, or several side by side; a page like that of a report (page.h).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "siamese/report/analysis_maps.h"
#include "siamese/runs/analysis_record.h"

namespace siamese::report {

// At least one. A text for people without scripts is part of it.
std::string analysis_page(const std::vector<DrawnAnalysis>& analyses);

// The most telling numbers of one analysis, in a few lines.
std::string analysis_summary(const runs::AnalysisRecord& analysis);

// Atomically; UsageError when a file stands there that is no page of ours.
void write_analysis_page(const std::filesystem::path& file, const std::vector<DrawnAnalysis>& analyses);

}  // namespace siamese::report
