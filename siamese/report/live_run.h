// A run directory that is being written: looked at again and again, it keeps what a live page shows, in bounded memory.
// Nothing is ever refused: what cannot be read is a line in `notes`, and what is gone is forgotten.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <deque>
#include <filesystem>
#include <string>
#include <vector>

#include "siamese/report/live_alerts.h"
#include "siamese/report/live_curve.h"
#include "siamese/report/run_record.h"
#include "siamese/report/snapshots.h"
#include "siamese/runs/line_tail.h"

namespace siamese::report {

struct EvalPoint {
  int64_t step = 0;
  double loss = kMissing;
  double accuracy = kMissing;
};

// Which file stood at a path, and in what state, by one stat().
class FileStamp {
 public:
  // True when it is not as it was when this was last asked.
  bool changed(const std::filesystem::path& path);
  bool there() const { return inode_ != 0; }

 private:
  uint64_t inode_ = 0, size_ = 0;
  int64_t seconds_ = 0, nanoseconds_ = 0;
};

// What is wrong with a file: the first place, and how many more.
struct Complaints {
  std::string first;
  size_t count = 0;

  void add(const runs::Notes& notes);
  void add_to(std::vector<std::string>& list) const;
};

class LiveRun {
 public:
  // `name`: what the page calls it.
  LiveRun(std::filesystem::path folder, std::string name);

  // Reads what is new, a bounded part of it; true when anything changed.
  bool poll();
  bool more() const { return more_; }  // there was more to read than one poll takes
  bool gone() const { return gone_; }  // the folder is no run any more

  const std::filesystem::path& folder() const { return folder_; }
  const std::string& name() const { return name_; }
  const LiveCurve& curve() const { return curve_; }
  const std::vector<EvalPoint>& evals() const { return evals_; }
  uint64_t evals_epoch() const { return evals_epoch_; }  // changes when other evaluations than new ones did
  std::vector<SiteSnapshot> snapshots() const { return snapshots_.list(); }
  int64_t recorded() const { return snapshots_.recorded(); }
  uint64_t revision() const { return revision_; }  // changes with anything
  int64_t restarts() const { return restarts_; }   // how often metrics.jsonl began again

  // As run.json and config.yaml have it.
  const RunRecord& facts() const { return facts_; }
  RunState state() const;
  int64_t step() const;
  double train_loss() const;  // mean of the last steps
  double rate() const { return rate_; }
  double tokens_per_s() const { return tokens_per_s_; }
  double samples_per_s() const { return samples_per_s_; }
  double step_ms() const { return step_ms_; }
  std::time_t changed() const { return steps_.changed(); }
  std::vector<Alert> alerts() const;
  std::vector<std::string> notes() const;

 private:
  bool poll_facts();
  bool poll_steps();
  bool poll_evals();
  void take_step(std::string_view line, const std::string& where);
  void take_eval(std::string_view line, const std::string& where);
  void forget_steps();
  void read_facts();

  std::filesystem::path folder_;
  std::string name_;
  FileStamp run_file_, config_file_;
  runs::LineTail steps_, evals_file_;
  RunRecord facts_;
  LiveCurve curve_;
  LiveAlerts watch_;
  Snapshots snapshots_;
  std::deque<double> newest_losses_;
  double rate_ = kMissing, tokens_per_s_ = kMissing, samples_per_s_ = kMissing, step_ms_ = kMissing;
  std::vector<EvalPoint> evals_;
  uint64_t evals_epoch_ = 0, revision_ = 0;
  int64_t restarts_ = 0;
  bool more_ = false, gone_ = false;
  Complaints step_complaints_, eval_complaints_;
};

}  // namespace siamese::report
