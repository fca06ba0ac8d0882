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

// The final results as Markdown: a table with one row per variant and learning rate, mean +- sample standard deviation
// over the seeds that did not diverge, one for each family of models when there are several; and where there are two
// variants, each at its best rate against the first.
std::string summary_table(const std::filesystem::path& sweep);

// The same, and what the page draws of results, as one JSON object (docs/run-directory.md).
std::string results_line(const std::filesystem::path& run_or_sweep);

}  // namespace siamese::report
