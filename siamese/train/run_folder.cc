#include "siamese/train/run_folder.h"

#include <algorithm>
#include <array>
#include <random>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/base/path_kind.h"
#include "siamese/io/aside.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/message.h"
#include "siamese/io/run_dir.h"
#include "siamese/runs/analysis_record.h"
#include "siamese/runs/event_file.h"
#include "siamese/runs/run_info.h"

namespace siamese::train {
namespace fs = std::filesystem;
namespace {

using Names = std::vector<std::string>;

constexpr std::array kRunFiles = {io::kConfigFile, io::kMetricsFile, io::kEvalFile,     io::kRunFile,
                                  io::kLatestFile, io::kReportFile,  io::kTokenizerFile};
constexpr std::array kCheckpointFiles = {io::kConfigFile,  io::kModelFile,   io::kOptimFile,
                                         io::kAverageFile, io::kTrainerFile, io::kTokenizerFile};

// The names in a folder, but for what is written aside: that is ours and never an obstacle.
Names names_in(const fs::path& folder) {
  Names names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (!io::is_aside_name(name)) names.push_back(std::move(name));
  }
  if (error) io::throw_system_error("read", folder, error.value());
  std::sort(names.begin(), names.end());
  return names;
}

template <class List>
bool is_one_of(std::string_view name, const List& list) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

bool is_run_file_name(std::string_view name) { return is_one_of(name, kRunFiles) || runs::is_event_file(name); }

// Themselves, not what a link leads to.
bool is_real_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(fs::symlink_status(path, error));
}

bool is_real_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(fs::symlink_status(path, error));
}

bool is_picture_name(std::string_view name) {
  constexpr std::string_view kEnding = ".png";
  return name.ends_with(kEnding) && io::checkpoint_step(name.substr(0, name.size() - kEnding.size())).has_value();
}

// Names in a checkpoint that no checkpoint has.
Names foreign_files(const fs::path& checkpoint) {
  Names foreign = names_in(checkpoint);
  std::erase_if(foreign, [&](const std::string& name) {
    const bool ours = is_one_of(name, kCheckpointFiles) || io::is_shard_or_index(name);
    return ours && is_real_file(checkpoint / name);
  });
  return foreign;
}

bool is_scores_name(const std::string& file) { return file.ends_with(".jsonl"); }
bool is_analysis_name(const std::string& file) {
  return file == runs::kAnalysisFile || file == runs::kAnalysisTensors || file == runs::kAnalysisPage;
}

// Names below tasks/ that `siamese eval --tasks` does not write, or below analysis/ that `siamese analyze` does not, as
// paths below `dir`.
Names foreign_by_step(const fs::path& dir, bool (*is_own)(const std::string& file)) {
  Names foreign;
  for (const std::string& step : names_in(dir)) {
    if (!io::checkpoint_step(step) || !is_real_folder(dir / step)) {
      foreign.push_back(step);
      continue;
    }
    for (const std::string& file : names_in(dir / step)) {
      if (!is_own(file) || !is_real_file(dir / step / file)) foreign.push_back(step + "/" + file);
    }
  }
  return foreign;
}

// What a run did not write, as paths below `dir`.
Names foreign_entries(const fs::path& dir) {
  Names foreign;
  for (const std::string& name : names_in(dir)) {
    if (io::checkpoint_step(name) && is_real_folder(dir / name)) {
      for (const std::string& file : foreign_files(dir / name)) foreign.push_back(name + "/" + file);
    } else if (name == io::kSamplesFolder && is_real_folder(dir / name)) {
      for (const std::string& file : names_in(dir / name)) {
        if (!is_picture_name(file) || !is_real_file(dir / name / file)) foreign.push_back(name + "/" + file);
      }
    } else if (name == io::kTasksFolder && is_real_folder(dir / name)) {
      for (const auto& file : foreign_by_step(dir / name, is_scores_name)) foreign.push_back(name + "/" + file);
    } else if (name == io::kAnalysisFolder && is_real_folder(dir / name)) {
      for (const auto& file : foreign_by_step(dir / name, is_analysis_name)) foreign.push_back(name + "/" + file);
    } else if (!is_run_file_name(name) || !is_real_file(dir / name)) {
      foreign.push_back(name);
    }
  }
  return foreign;
}

// "a, b, c and 4 more".
std::string listed(const Names& names) {
  constexpr size_t kMost = 3;
  std::string text;
  for (size_t i = 0; i < std::min(kMost, names.size()); ++i) text += (i > 0 ? ", " : "") + io::in_quotes(names[i]);
  return names.size() > kMost ? fmt::format("{} and {} more", text, names.size() - kMost) : text;
}

}  // namespace

bool is_run(const fs::path& dir) { return is_real_file(dir / io::kRunFile) && runs::is_run_file(dir); }

void check_only_checkpoint(const fs::path& folder) {
  if (!is_real_folder(folder)) return;
  if (const Names foreign = foreign_files(folder); !foreign.empty()) {
    throw SystemError(
        fmt::format("{}: stays as it is: it holds what no run wrote: {}", folder.string(), listed(foreign)));
  }
}

void check_free(const fs::path& dir, bool overwrite) {
  if (dir.empty()) throw UsageError("the run directory (--out): expected a path, got ''");
  if (!is_taken(dir)) return;
  if (!is_folder(dir)) {
    throw UsageError(fmt::format("{}: expected a folder for the run, got {}", dir.string(),
                                 is_there(dir) ? "a file" : "a link to nothing"));
  }
  const Names standing = names_in(dir);
  const bool never_began = standing == Names{std::string(io::kRunFile)} && is_run(dir);
  if (standing.empty() || never_began) return;
  if (!overwrite) {
    throw UsageError(dir.string() + ": exists already; --overwrite replaces it, `siamese resume` continues it");
  }
  constexpr std::string_view kOnlyRuns = "--overwrite replaces only an earlier run";
  if (!is_run(dir)) {
    throw UsageError(fmt::format("{}: {}, and this is none: it has no {} of ours, but {}", dir.string(), kOnlyRuns,
                                 io::kRunFile, listed(standing)));
  }
  if (const Names foreign = foreign_entries(dir); !foreign.empty()) {
    throw UsageError(
        fmt::format("{}: {}, and this holds what no run wrote: {}", dir.string(), kOnlyRuns, listed(foreign)));
  }
}

void clear_for_run(const fs::path& dir) {
  io::remove_leftovers(dir);
  std::error_code error;
  fs::remove(dir / io::kConfigFile, error);  // first: without it nobody goes on with the rest
  for (const std::string& name : names_in(dir)) {
    const bool belongs = is_run_file_name(name) || io::checkpoint_step(name) || name == io::kSamplesFolder ||
                         name == io::kTasksFolder || name == io::kAnalysisFolder;
    if (!belongs || name == io::kRunFile) continue;
    fs::remove_all(dir / name, error);
    if (error) io::throw_system_error("remove", dir / name, error.value());
  }
}

std::string new_run_id() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

}  // namespace siamese::train
