// Several runs of a sweep at once, each in a process of its own. The sweep's process starts them, passes on what they
// print, asks them to save and stop when it is asked itself, and notes what came of them; it trains nothing.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "siamese/base/child_process.h"
#include "siamese/train/sweep.h"

namespace siamese::train {

class SweepWorkers {
 public:
  SweepWorkers(Sweep& sweep, const SweepHooks& hooks) : sweep_(sweep), hooks_(hooks) {}

  // As Sweep::train.
  RunResult train();

 private:
  struct Worker {
    const PlannedRun* run = nullptr;
    std::unique_ptr<ChildProcess> process;
    std::string text = {};       // of a line that has not ended yet
    std::string last_line = {};  // what it said last, why it failed if it did
  };

  RunResult train_all();
  bool all_begun() const { return next_ == sweep_.plan_.runs.size(); }
  void ask_to_stop();
  void begin_next();
  void listen();  // until something comes, for a moment at most
  void pass_on(Worker& worker);
  void end(Worker& worker);
  bool out_of_time(const PlannedRun& run) const;

  Sweep& sweep_;
  const SweepHooks& hooks_;
  std::vector<Worker> workers_;
  size_t next_ = 0;        // of the plan
  bool stopping_ = false;  // asked to stop: no run begins any more
  int signal_ = 0;         // by which; 0: the hours are over
  bool hours_over_ = false;
  bool left_over_ = false;  // a run that was stopped can be continued
};

}  // namespace siamese::train
