// The record of a sweep: one JSON line for each run that ended (runs/record_line.h), in a file kept with the source, so
// that a sweep goes on another day or on another machine.
//
// A line is about a planned run when the configs agree in every key that decides a result (config_keys.h), and the data
// hold the same, wherever they lie: data.train and data.val count only where the line or this machine cannot say what
// the data hold (lines of schema 1; data that are not here). Keys that a line lacks did not exist when it
// was written and have their defaults; a line with a key that exists no more is about no run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "siamese/runs/record_line.h"
#include "siamese/train/config.h"
#include "siamese/train/config_keys.h"
#include "siamese/train/sweep_plan.h"

namespace siamese::train {

// The line of a run that ended in `run_dir`.
runs::RecordLine record_line(const std::string& sweep, const PlannedRun& run, const std::filesystem::path& run_dir);

// Whether all of it was made by this program (provenance.h); what does not say was not.
bool is_of_this_build(const std::vector<runs::Stretch>& stretches);
bool is_of_this_build(const std::filesystem::path& run_dir);

// What the data of planned runs hold, files hashed once; empty where they are not here, or made by the engine.
class DataKeys {
 public:
  const runs::DataKey& of(const RunConfig& planned);

 private:
  std::map<std::string, runs::DataKey> known_;  // by the data section
};

// The file. Several processes may read and add at once: whoever adds holds a lock on the file's folder and looks at
// the file again first. A line that cannot be understood is a DataError: what was measured is not dropped in silence.
class SweepRecord {
 public:
  // Which lines count: with `of_this_build` those of other builds are as if they were not there, and `add` replaces
  // them.
  enum class Lines { all, of_this_build };

  explicit SweepRecord(std::filesystem::path file, Lines lines = Lines::all);  // the file need not exist yet

  const std::filesystem::path& file() const { return file_; }
  // Before anything is trained: SystemError when a line could not be added.
  void check_writable() const;
  // The first line about this run, as the file is now (it is read again only when it is another than before). What a
  // line is too old to say is filled in (record_facts.h).
  std::optional<runs::RecordLine> find(const RunConfig& planned);
  // All that count, as the file is now.
  std::vector<runs::RecordLine> lines();
  // Nothing happens when a line about the same run is there already: its numbers stay.
  void add(const runs::RecordLine& line);

 private:
  // What a line is known by.
  struct Key {
    std::string config;  // by today's keys and defaults, without where the data lie; empty: cannot be any run of today
    std::string places;  // where they lie
    runs::DataKey data;  // empty: not known, or no files
  };
  struct Entry {
    runs::RecordLine line;
    Key key;
    bool counts = true;
    size_t from = 0, size = 0;  // its place in the text, '\n' included
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
  void keep(runs::RecordLine line, size_t from, size_t size);
  static Key key_of(const ConfigTexts& resolved, const runs::DataKey& data);
  // In order.
  std::vector<const Entry*> entries_about(const Key& key) const;
  const Entry* counted_about(const Key& key) const;
  std::filesystem::path file_;
  Lines lines_;
  std::string text_;
  Stamp stamp_;  // of the file that `text_` is from
  std::vector<Entry> entries_;
  std::unordered_map<std::string, std::vector<size_t>> by_config_;
  DataKeys data_;
};

}  // namespace siamese::train
