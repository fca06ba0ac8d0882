#include "siamese/report/report.h"

#include "siamese/base/utf8.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/run_dir.h"
#include "siamese/report/aggregate.h"
#include "siamese/report/builds.h"
#include "siamese/report/page.h"
#include "siamese/report/page_data.h"
#include "siamese/report/reader.h"
#include "siamese/report/sample_grids.h"
#include "siamese/report/summary.h"

namespace siamese::report {

namespace {

Collection read_and_judge(const std::filesystem::path& run_or_sweep) {
  Collection collection = read_collection(run_or_sweep);
  collection.runs = mark_stuck(std::move(collection.runs));
  mark_builds(collection);
  return collection;
}

std::string summary_of(const Collection& collection, const std::vector<ResultGroup>& groups) {
  const std::string note = builds_note(collection);
  return summary_markdown(groups) + (note.empty() ? "" : "\n" + printable(note) + "\n");
}

}  // namespace

std::filesystem::path write_report(const std::filesystem::path& run_or_sweep) {
  Collection collection = read_and_judge(run_or_sweep);
  load_sample_grids(run_or_sweep, collection);
  const auto groups = group_results(collection.runs);
  const std::string title = (collection.is_sweep ? "Sweep " : "Run ") + collection.name + " - siamese";
  const std::filesystem::path path = run_or_sweep / io::kReportFile;
  io::write_file_atomic(path, render_page(title, page_data(collection, groups), summary_of(collection, groups)));
  return path;
}

std::string summary_table(const std::filesystem::path& sweep) {
  const Collection collection = read_and_judge(sweep);
  return summary_of(collection, group_results(collection.runs));
}

}  // namespace siamese::report
