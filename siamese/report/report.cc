#include "siamese/report/report.h"

#include "siamese/base/check.h"
#include "siamese/base/path_kind.h"
#include "siamese/base/utf8.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/result_file.h"
#include "siamese/io/run_dir.h"
#include "siamese/report/aggregate.h"
#include "siamese/report/assets.h"
#include "siamese/report/builds.h"
#include "siamese/report/comparison.h"
#include "siamese/report/csv.h"
#include "siamese/report/judgement.h"
#include "siamese/report/page.h"
#include "siamese/report/page_data.h"
#include "siamese/report/page_results.h"
#include "siamese/report/reader.h"
#include "siamese/report/remarks.h"
#include "siamese/report/sample_grids.h"
#include "siamese/report/sources.h"
#include "siamese/report/summary.h"

namespace siamese::report {

namespace {

namespace fs = std::filesystem;

// Sources, read and judged, with all that is computed from them: once for the page, the tables and the JSON.
struct Results {
  Collection collection;
  std::vector<ResultGroup> groups;
  std::vector<FamilyComparison> comparisons;
};

Results results_of(Collection collection) {
  Results results{std::move(collection), {}, {}};
  results.collection.runs = judge(std::move(results.collection.runs));
  mark_builds(results.collection);
  results.groups = group_results(results.collection.runs);
  results.comparisons = compare_variants(results.collection.runs, results.groups);
  return results;
}

std::string title_of(const Collection& collection) {
  if (collection.is_comparison) return collection.name + " - siamese";
  return (collection.is_sweep ? "Sweep " : "Run ") + collection.name + " - siamese";
}

std::string summary_of(const Results& results) {
  std::string text = summary_markdown(results.groups, results.comparisons);
  for (const std::string& line : remarks(results.collection)) text += "\n" + printable(line) + "\n";
  return text;
}

std::string page_of(Results& results) {
  load_sample_grids(results.collection);
  return render_page(title_of(results.collection), page_data(results.collection, results.groups, results.comparisons),
                     summary_of(results), script_text());
}

void write_page(Results& results, const fs::path& page) { io::write_file_atomic(page, page_of(results)); }

}  // namespace

fs::path write_report(const ReportRequest& request, std::vector<std::string>* said) {
  if (request.sources.empty()) throw UsageError("report: expected a run, a checkpoint or a sweep, got none");
  Results results = results_of(read_sources(request.sources));
  if (said != nullptr) *said = remarks(results.collection);
  const bool in_its_folder = request.page.empty() && !results.collection.is_comparison;
  const fs::path beside = in_its_folder ? request.sources.front() : fs::path();
  const fs::path page = request.page.empty() ? beside / io::kReportFile : request.page;
  io::check_result_file(page, "page of a report", io::holds_text(std::string(kPageMark)));
  if (!request.csv.empty()) {
    io::check_result_file(request.csv, "table of a report", io::holds_text(std::string(kCsvStart), kCsvStart.size()));
  }
  write_page(results, page);
  if (!request.csv.empty()) io::write_file_atomic(request.csv, results_csv(results.groups));
  return page;
}

fs::path write_report(const fs::path& run_or_sweep) {
  Results results = results_of(read_collection(run_or_sweep));
  const fs::path page = run_or_sweep / io::kReportFile;
  write_page(results, page);
  return page;
}

std::string report_page(const std::vector<fs::path>& sources) {
  Results results = results_of(read_sources(sources));
  return page_of(results);
}

std::string summary_table(const fs::path& sweep) { return summary_of(results_of(read_collection(sweep))); }

std::string summary_of_ended(const fs::path& sweep) {
  Collection ended = read_collection(sweep);
  std::erase_if(ended.runs, [](const RunRecord& run) {
    return run.state != RunState::finished && run.state != RunState::diverged;
  });
  return ended.runs.empty() ? "" : summary_of(results_of(std::move(ended)));
}

std::string results_line(const std::vector<fs::path>& sources) {
  const Results results = results_of(read_sources(sources));
  return results_json(results.collection, results.groups, results.comparisons);
}

std::string results_csv(const std::vector<fs::path>& sources, std::vector<std::string>* said) {
  const Results results = results_of(read_sources(sources));
  if (said != nullptr) *said = remarks(results.collection);
  return results_csv(results.groups);
}

}  // namespace siamese::report
