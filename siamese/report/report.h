// What came out of a run, or of a sweep of runs, for people: one HTML page that needs no network, and a plain table.
//   RUN/    run.json  metrics.jsonl  eval.jsonl  config.yaml     each may be missing: the page says so
//   SWEEP/  sweep.json  recorded.jsonl  <run>/...                runs that have not started yet are listed as such
#pragma once

#include <filesystem>
#include <string>

namespace siamese::report {

// Writes `report.html` into the folder, atomically, and returns its path. A folder that is neither a run nor a sweep
// is a DataError.
std::filesystem::path write_report(const std::filesystem::path& run_or_sweep);

// The final results as a Markdown table, one row per variant and learning rate: mean +- sample standard deviation
// over the seeds that did not diverge; a table for each family of models when there are several.
std::string summary_table(const std::filesystem::path& sweep);

}  // namespace siamese::report
