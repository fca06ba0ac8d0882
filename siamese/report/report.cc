#include "siamese/report/report.h"

#include "siamese/base/check.h"
#include "siamese/base/path_kind.h"
#include "siamese/base/utf8.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/run_dir.h"
#include "siamese/report/aggregate.h"
#include "siamese/report/builds.h"
#include "siamese/report/csv.h"
#include "siamese/report/page.h"
#include "siamese/report/page_data.h"
#include "siamese/report/reader.h"
#include "siamese/report/sample_grids.h"
#include "siamese/report/sources.h"
#include "siamese/report/summary.h"

namespace siamese::report {

namespace {

namespace fs = std::filesystem;

Collection judged(Collection collection) {
  collection.runs = mark_stuck(std::move(collection.runs));
  mark_builds(collection);
  return collection;
}

std::string title_of(const Collection& collection) {
  if (collection.is_comparison) return collection.name + " - siamese";
  return (collection.is_sweep ? "Sweep " : "Run ") + collection.name + " - siamese";
}

std::string summary_of(const Collection& collection, const std::vector<ResultGroup>& groups) {
  const std::string note = builds_note(collection);
  return summary_markdown(groups) + (note.empty() ? "" : "\n" + printable(note) + "\n");
}

// Somebody's file of that name is not ours to replace.
void check_ours(const fs::path& path, std::string_view mark, const std::string& expected) {
  if (path.empty() || !is_taken(path)) return;
  if (is_file(path) && io::read_file(path).find(mark) != std::string::npos) return;
  throw UsageError(path.string() + ": exists already and is no " + expected + "; choose another file");
}

std::vector<ResultGroup> write_page(Collection& collection, const fs::path& page) {
  load_sample_grids(collection);
  auto groups = group_results(collection.runs);
  io::write_file_atomic(page,
                        render_page(title_of(collection), page_data(collection, groups), summary_of(collection, groups)));
  return groups;
}

}  // namespace

fs::path write_report(const ReportRequest& request) {
  if (request.sources.empty()) throw UsageError("report: expected a run, a checkpoint or a sweep, got none");
  Collection collection = judged(read_sources(request.sources));
  const bool in_its_folder = request.page.empty() && !collection.is_comparison;
  const fs::path beside = in_its_folder ? request.sources.front() : fs::path();
  const fs::path page = request.page.empty() ? beside / io::kReportFile : request.page;
  if (!in_its_folder) check_ours(page, kPageMark, "page of a report");
  check_ours(request.csv, kCsvStart, "table of a report");
  const auto groups = write_page(collection, page);
  if (!request.csv.empty()) io::write_file_atomic(request.csv, results_csv(groups));
  return page;
}

fs::path write_report(const fs::path& run_or_sweep) {
  Collection collection = judged(read_collection(run_or_sweep));
  const fs::path page = run_or_sweep / io::kReportFile;
  write_page(collection, page);
  return page;
}

std::string summary_table(const fs::path& sweep) {
  const Collection collection = judged(read_collection(sweep));
  return summary_of(collection, group_results(collection.runs));
}

std::string results_csv(const std::vector<fs::path>& sources) {
  return results_csv(group_results(judged(read_sources(sources)).runs));
}

}  // namespace siamese::report
