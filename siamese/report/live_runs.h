// The runs below some folders, while they are trained: found, read and forgotten as they come and go.
// A folder that is no run counts as the runs in it, kDepth levels down (a sweep; a folder of sweeps). One thread polls;
// any number of others ask for what is new to them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "siamese/report/live_run.h"

namespace siamese::report {

// What one reader has got so far (live_feed.h).
struct SeenRun {
  uint64_t revision = 0, curve_epoch = 0, evals_epoch = 0;
  size_t buckets = 0, evals = 0;
  bool fresh = true;  // nothing yet
};
struct Seen {
  std::map<uint64_t, SeenRun> runs;
  std::string problems;
  bool reading = false;
  bool begun = false;
};

class LiveRuns {
 public:
  static constexpr size_t kMostRuns = 1000;
  static constexpr size_t kMostFolders = 20000;  // looked at in one search
  static constexpr int kDepth = 3;
  using Clock = std::chrono::steady_clock;

  // DataError when one is no folder, or a checkpoint. One without a run in it may get some.
  explicit LiveRuns(std::vector<std::filesystem::path> sources);

  struct Progress {
    bool changed = false;
    bool more = false;  // not everything has been read: poll again soon
  };
  // Looks at every file once (those of a run that has been still for a minute, every fifth time), and for new runs from
  // time to time: a search takes a hundredth of the time at most.
  Progress poll();

  // The next message for a reader, "" when it has everything: one JSON object in ASCII (docs/watch.md).
  std::string news(Seen& seen) const;
  // The profiles by depth of a run as JSON; nullopt when there is no such run.
  std::optional<std::string> depth(uint64_t id) const;
  std::optional<std::filesystem::path> folder(uint64_t id) const;
  size_t size() const;
  std::string title() const;

 private:
  struct Entry {
    std::unique_ptr<LiveRun> run;
    int still = 0;  // polls without a change
  };

  void search();
  void search(const std::filesystem::path& folder, const std::string& name, int depth, size_t& budget);
  void add(const std::filesystem::path& folder, const std::string& name);
  std::string shown_name(const std::filesystem::path& source) const;
  void note(const std::string& problem);

  const std::vector<std::filesystem::path> sources_;
  mutable std::mutex mutex_;
  std::map<uint64_t, Entry> runs_;
  std::map<std::string, uint64_t> known_;  // by canonical path
  std::vector<std::string> problems_;
  uint64_t last_id_ = 0, polls_ = 0;
  bool reading_ = true;
  Clock::time_point next_search_ = {};
};

}  // namespace siamese::report
