// One run by several processes (comm/group.h). Rank 0 leads: it runs the run as if it were alone, keeps its directory
// and decides when to save, to evaluate and to stop. The others follow: they wait for its orders, and take every step
// together with it, each with a Trainer of its own.
#pragma once

#include <filesystem>
#include <functional>

#include "siamese/comm/group.h"
#include "siamese/train/trainer.h"

namespace siamese::train {

// Rank 0's side.
class Ranks {
 public:
  explicit Ranks(comm::Group& group) : group_(group) {}

  comm::Group& group() const { return group_; }
  int size() const { return group_.size(); }

  // The others make the trainer that this one is: of its config and, if it was resumed, its checkpoint. They have to
  // see the run directory (a shared file system). UsageError or DataError naming the rank, its host and what differs
  // when build, processor or data are not the same everywhere.
  void start(const Trainer& trainer, const std::filesystem::path& run_dir, const std::filesystem::path& checkpoint);
  StepMetrics step(Trainer& trainer);
  eval::Evaluation evaluate(const Trainer& trainer);
  // A checkpoint, of which every rank writes a part. After an error inside a step rank 0 saves alone, where it can.
  std::filesystem::path save(Trainer& trainer, const std::filesystem::path& run_dir);
  // The signal that another rank caught by its last step, or 0.
  int signal_elsewhere() const { return signal_elsewhere_; }
  // Lets the others go. False when they wait inside a step or an evaluation: then only comm::Group::end_all helps.
  bool finish();

 private:
  comm::Group& group_;
  bool exchanging_ = false;  // the others are not waiting for an order
  int signal_elsewhere_ = 0;
};

// The side of all other ranks, from the start of the process: waits for orders until rank 0 lets it go.
void follow(comm::Group& group, const std::function<int()>& stop_signal);

}  // namespace siamese::train
