#include "siamese/report/report.h"

#include "siamese/base/utf8.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/run_dir.h"
#include "siamese/report/aggregate.h"
#include "siamese/report/builds.h"
#include "siamese/report/comparison.h"
#include "siamese/report/judgement.h"
#include "siamese/report/page.h"
#include "siamese/report/page_data.h"
#include "siamese/report/page_results.h"
#include "siamese/report/reader.h"
#include "siamese/report/sample_grids.h"
#include "siamese/report/summary.h"

namespace siamese::report {

namespace {

// A folder, read and judged, with all that is computed from it: once for the page, the tables and the JSON.
struct Results {
  Collection collection;
  std::vector<ResultGroup> groups;
  std::vector<FamilyComparison> comparisons;
};

Results read_results(const std::filesystem::path& run_or_sweep) {
  Results results{read_collection(run_or_sweep), {}, {}};
  results.collection.runs = judge(std::move(results.collection.runs));
  mark_builds(results.collection);
  results.groups = group_results(results.collection.runs);
  results.comparisons = compare_variants(results.collection.runs, results.groups);
  return results;
}

std::string summary_of(const Results& results) {
  const std::string note = builds_note(results.collection);
  return summary_markdown(results.groups, results.comparisons) + (note.empty() ? "" : "\n" + printable(note) + "\n");
}

}  // namespace

std::filesystem::path write_report(const std::filesystem::path& run_or_sweep) {
  Results results = read_results(run_or_sweep);
  load_sample_grids(run_or_sweep, results.collection);
  const std::string title = (results.collection.is_sweep ? "Sweep " : "Run ") + results.collection.name + " - siamese";
  const std::filesystem::path path = run_or_sweep / io::kReportFile;
  io::write_file_atomic(path, render_page(title, page_data(results.collection, results.groups, results.comparisons),
                                          summary_of(results)));
  return path;
}

std::string summary_table(const std::filesystem::path& sweep) { return summary_of(read_results(sweep)); }

std::string results_line(const std::filesystem::path& run_or_sweep) {
  const Results results = read_results(run_or_sweep);
  return results_json(results.collection, results.groups, results.comparisons);
}

}  // namespace siamese::report
