// The record of a sweep: one JSON line for each run that ended, in a file kept with the source, so that a sweep goes
// on another day or on another machine. The schema stands in docs/run-directory.md.
//
// A line is about a planned run when the configs agree in every key that decides a result (config_keys.h). Keys that a
// line lacks did not exist when it was written and have their defaults; a line with a key that exists no more is about
// no run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "siamese/train/config.h"
#include "siamese/train/config_keys.h"
#include "siamese/train/run_summary.h"
#include "siamese/train/sweep_plan.h"

namespace siamese::train {

struct RecordLine {
  std::string sweep, dir, variant, scheme;
  double lr = 0;
  uint64_t seed = 0;
  ConfigTexts config;  // result_config
  RunSummary summary;
  int64_t threads = 0;
  std::string cpu, version;  // of the machine and program that wrote the line
};

// The line of a run that ended in `run_dir`.
RecordLine record_line(const std::string& sweep, const PlannedRun& run, const std::filesystem::path& run_dir,
                       const std::string& version);

std::string to_json(const RecordLine& line);
// `where` names the line in a DataError ("stability.jsonl: line 3").
RecordLine parse_record_line(const std::string& text, const std::string& where);

// The file. Several processes may read and add at once: whoever adds holds a lock on the file's folder and looks at
// the file again first. A line that cannot be understood is a DataError: what was measured is not dropped in silence.
class SweepRecord {
 public:
  explicit SweepRecord(std::filesystem::path file);  // which need not exist yet

  const std::filesystem::path& file() const { return file_; }
  // Before anything is trained: SystemError when a line could not be added.
  void check_writable() const;
  // The first line about this run, as the file is now. The file is read again only when it is another than before.
  std::optional<RecordLine> find(const RunConfig& planned);
  // All of them, as the file is now.
  std::vector<RecordLine> lines();
  // Nothing happens when a line about the same run is there already: its numbers stay.
  void add(const RecordLine& line);

 private:
  struct Entry {
    RecordLine line;
    ConfigTexts resolved;  // by today's keys and defaults; empty: cannot be any run of today
  };
  // Which file stands under the name: a writer replaces it by a new one.
  struct Stamp {
    uint64_t device = 0, inode = 0, size = 0;
    int64_t changed_ns = 0;
    bool operator==(const Stamp&) const = default;
  };
  Stamp stamp() const;
  void refresh();
  void take(std::string text);
  void keep(Entry entry);
  const Entry* entry_about(const ConfigTexts& config) const;

  std::filesystem::path file_;
  std::string text_;
  Stamp stamp_;  // of the file that `text_` is from
  std::vector<Entry> entries_;
  std::unordered_map<std::string, size_t> by_config_;  // the first entry about each resolved config
};

}  // namespace siamese::train
