// A checkpoint that is written while training goes on (train.save_in_background): from a copy in memory, by a thread of
// its own. It appears complete or not at all, as any other (checkpoint.h). Of several ranks each copies and writes its
// part; only the thread that trains talks to the others, so that a part which is written waits for the next exchange.
#pragma once

#include <filesystem>
#include <future>
#include <memory>

#include "siamese/comm/group.h"
#include "siamese/train/checkpoint.h"

namespace siamese::train {

class BackgroundSave {
 public:
  // Rank 0, or one process. SystemError when it cannot begin; what fails later, `finish` throws.
  static std::shared_ptr<BackgroundSave> begin(const std::filesystem::path& run_dir, const RunConfig& config,
                                               const RunParts& parts, const TrainerState& state, comm::Group* group);
  // Another rank, at the same time; null when rank 0 cannot begin.
  static std::shared_ptr<BackgroundSave> help(const RunConfig& config, const RunParts& parts, comm::Group& group);
  // Waits for what is being written. What was not finished leaves nothing behind.
  ~BackgroundSave();
  BackgroundSave(const BackgroundSave&) = delete;
  BackgroundSave& operator=(const BackgroundSave&) = delete;

  int64_t step() const { return content_.state.step; }
  // Whether this rank's part is written, or could not be.
  bool part_is_written() const;
  // All ranks call it, once: waits until all parts are written, then rank 0 goes on in the background. On another rank
  // nothing is left to do.
  void join_parts();
  bool parts_are_joined() const { return !part_.valid(); }

  // Rank 0, or one process: whether `finish` has nothing to wait for.
  bool is_done() const;
  // The checkpoint, once it is there. SystemError when it could not be written.
  std::filesystem::path finish();

 private:
  BackgroundSave(std::filesystem::path run_dir, CheckpointContent content, comm::Group* group)
      : run_dir_(std::move(run_dir)), content_(std::move(content)), group_(group) {}
  void start();
  std::vector<ShardFile> write_part();
  std::filesystem::path complete(const std::vector<ShardFile>& files);

  std::filesystem::path run_dir_;
  CheckpointContent content_;
  comm::Group* group_;                           // null: one process
  std::unique_ptr<io::AtomicDirectory> folder_;  // null on ranks that are not the first
  std::filesystem::path folder_path_;
  std::future<std::vector<ShardFile>> part_;  // of several ranks: this one's
  std::future<std::filesystem::path> whole_;
};

}  // namespace siamese::train
