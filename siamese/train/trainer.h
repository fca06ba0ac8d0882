// The one training loop: batch -> loss -> gradients -> clip -> step, and what is recorded on the way.
#pragma once

#include <memory>

#include "siamese/data/dataset.h"
#include "siamese/eval/evaluate.h"
#include "siamese/models/model.h"
#include "siamese/train/checkpoint.h"
#include "siamese/train/config.h"
#include "siamese/train/metrics.h"
#include "siamese/train/optimizer.h"

namespace siamese::data {
class Prefetcher;
}

namespace siamese::train {

// Model, data and optimizer of a run, and the step. Knows no files but the data's and init.from.
class Trainer {
 public:
  // Opens and checks the data, builds the model; DataError or UsageError before anything is trained.
  // `resuming`: the weights will come from a checkpoint, so init.from is not read again.
  explicit Trainer(const RunConfig& config, bool resuming = false);
  ~Trainer();

  // One optimizer step. A non-finite loss or gradient leaves the weights as they were (metrics.skipped).
  StepMetrics step();
  eval::Evaluation evaluate() const;

  void resume_from(const std::filesystem::path& checkpoint);
  std::filesystem::path save(const std::filesystem::path& run_dir) const;

  bool finished() const { return state_.step >= config_.train.steps; }
  const TrainerState& state() const { return state_; }
  const RunConfig& config() const { return config_; }
  const models::Model& model() const { return *model_; }
  const data::Dataset& training_data() const { return *training_data_; }

 private:
  RunConfig config_;
  std::unique_ptr<data::Dataset> training_data_;  // before the model: bad data is found in no time
  std::unique_ptr<data::Dataset> test_data_;
  std::unique_ptr<models::Model> model_;
  nn::GradientBuffer gradients_;
  AdamW optimizer_;
  std::unique_ptr<data::Prefetcher> prefetcher_;  // made at the first step
  TrainerState state_;
};

}  // namespace siamese::train
