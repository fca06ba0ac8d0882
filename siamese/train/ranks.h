// One run by several processes (comm/group.h). Rank 0 leads: it runs the run as if it were alone, keeps its directory
// and decides when to save, to evaluate and to stop. The others follow: they wait for its orders, and take every step
// together with it, each with a Trainer of its own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>

#include "siamese/comm/group.h"
#include "siamese/train/background_save.h"
#include "siamese/train/trainer.h"

namespace siamese::train {

class Pulse;
enum class Order : int64_t;  // what rank 0 asks of the others

// Rank 0's side.
class Ranks {
 public:
  explicit Ranks(comm::Group& group);
  ~Ranks();

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
  // The same in the background (background_save.h): each step then looks whether all ranks have written their part.
  // One at a time.
  std::shared_ptr<BackgroundSave> begin_save(const Trainer& trainer, const std::filesystem::path& run_dir);
  // Waits for it. SystemError when it could not be written, or the others are inside a step.
  std::filesystem::path finish_save();
  // The signal that another rank caught by its last step, or 0.
  int signal_elsewhere() const { return signal_elsewhere_; }
  // Lets the others go. False when they wait inside a step or an evaluation: then only comm::Group::end_all helps.
  bool finish();

 private:
  // Between these two the others do something together with this rank. Where an error skips the second, nobody knows
  // what they wait for.
  void call(Order order);
  void release();

  comm::Group& group_;
  double timeout_ = 0;
  std::unique_ptr<Pulse> pulse_;  // since the start
  std::shared_ptr<BackgroundSave> saving_;
  bool exchanging_ = false;  // the others are not waiting for an order
  int signal_elsewhere_ = 0;
};

// The side of all other ranks, from the start of the process: waits for orders until rank 0 lets it go.
void follow(comm::Group& group, const std::function<int()>& stop_signal);

}  // namespace siamese::train
