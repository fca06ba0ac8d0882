#include "siamese/report/event_files.h"

#include <map>
#include <set>

#include "siamese/base/check.h"
#include "siamese/base/path_kind.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/run_dir.h"
#include "siamese/report/sources.h"
#include "siamese/runs/event_file.h"
#include "siamese/runs/run_info.h"

namespace siamese::report {

namespace fs = std::filesystem;

size_t write_event_files(const std::vector<fs::path>& sources, const fs::path& folder) {
  std::set<fs::path> folders;
  for (const RunRecord& run : read_sources(sources).runs) {
    if (!run.folder.empty() && is_there(fs::path(run.folder) / io::kMetricsFile))
      folders.insert(fs::canonical(run.folder));
  }
  if (folders.empty()) throw DataError("--tensorboard: expected a run with a metrics.jsonl, got none");
  std::map<fs::path, int> named;
  for (const fs::path& run : folders) ++named[run.filename()];
  std::set<fs::path> taken;
  for (const fs::path& run : folders) {
    const bool alone = named[run.filename()] == 1;
    const fs::path name = alone ? run.filename() : run.parent_path().filename() / run.filename();
    if (!taken.insert(name).second) {
      throw UsageError("--tensorboard: expected runs of different names, got two that end in " + name.string());
    }
    io::make_directory(folder / name);
    runs::Notes unreadable;  // then the times begin at 0
    const auto info = runs::read_run_file(run, &unreadable);
    runs::EventFile(run, folder / name, info ? info->stretches : std::vector<runs::Stretch>{});
  }
  return folders.size();
}

}  // namespace siamese::report
