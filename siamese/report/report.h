// What came out of runs, for people: one HTML page that needs no network, a plain table, and the table as CSV.
//   RUN/    run.json  metrics.jsonl  eval.jsonl  config.yaml     each may be missing: the page says so
//   SWEEP/  sweep.json  recorded.jsonl  <run>/...                runs that have not started yet are listed as such
// Several of them, and checkpoints, are compared in one page (sources.h).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace siamese::report {

struct ReportRequest {
  std::vector<std::filesystem::path> sources;  // at least one
  std::filesystem::path page;  // empty: report.html, of one run or sweep in its folder, else in the working directory
  std::filesystem::path csv;   // empty: none
};

// Writes the files, atomically, and returns the path of the page. DataError when a source is neither run, checkpoint
// nor sweep. A file at `page` or `csv` that this did not write is refused (UsageError).
// `said` gets what there is to know beside the results (remarks.h).
std::filesystem::path write_report(const ReportRequest& request, std::vector<std::string>* said = nullptr);

// Of one run or sweep, into its folder.
std::filesystem::path write_report(const std::filesystem::path& run_or_sweep);

// The page about them as text; nothing is written.
std::string report_page(const std::vector<std::filesystem::path>& sources);

// The final results as Markdown: a table with one row per variant and learning rate, mean +- sample standard deviation
// over the seeds that did not diverge, one for each family of models when there are several; and where there are two
// variants, each at its best rate against the first.
std::string summary_table(const std::filesystem::path& sweep);

// The same of the runs that have ended, as if the sweep had no others; empty when none has.
std::string summary_of_ended(const std::filesystem::path& sweep);

// The results, and what the page draws of them, as one JSON object (docs/run-directory.md).
std::string results_line(const std::vector<std::filesystem::path>& sources);

// The table as CSV (csv.h).
std::string results_csv(const std::vector<std::filesystem::path>& sources, std::vector<std::string>* said = nullptr);

}  // namespace siamese::report
