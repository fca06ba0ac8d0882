// analysis.html: one analysis, or several side by side; a page like that of a report (page.h).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "siamese/report/analysis_maps.h"
#include "siamese/runs/analysis_record.h"

namespace siamese::report {

// What analyses side by side do not share, in one line: the first and the first other of each; empty: nothing.
std::string unlike(const std::vector<DrawnAnalysis>& analyses);

// UsageError naming two runs of different families, whose numbers do not compare.
void check_one_family(const std::vector<DrawnAnalysis>& analyses);

// At least one, of one family. A text for people without scripts is part of it.
std::string analysis_page(const std::vector<DrawnAnalysis>& analyses);

// The most telling numbers of one analysis, in a few lines.
std::string analysis_summary(const runs::AnalysisRecord& analysis);

// Atomically; UsageError when a file stands there that is no page of ours.
void write_analysis_page(const std::filesystem::path& file, const std::vector<DrawnAnalysis>& analyses);

}  // namespace siamese::report
