// The one training loop: batch -> loss -> gradients -> clip -> step, and what is recorded on the way.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "siamese/comm/group.h"
#include "siamese/data/batches.h"
#include "siamese/eval/evaluate.h"
#include "siamese/models/model.h"
#include "siamese/train/average.h"
#include "siamese/train/background_save.h"
#include "siamese/train/checkpoint.h"
#include "siamese/train/classifier.h"
#include "siamese/train/config.h"
#include "siamese/train/gradient_exchange.h"
#include "siamese/train/metrics.h"
#include "siamese/train/optimizer.h"
#include "siamese/train/run_tokenizer.h"
#include "siamese/train/weight_parts.h"

namespace siamese::data {
class Prefetcher;
}

namespace siamese::train {

// Model, data and optimizer of a run, and the step. Knows no files but the data's and init.from.
class Trainer {
 public:
  // Opens and checks the data, builds the model; DataError or UsageError before anything is trained.
  // `resuming`: the weights will come from a checkpoint, so init.from is not read again.
  // `group`: the ranks that take each step together, every one with a Trainer of the same config; null: alone. A rank
  // computes whole consecutive micro-batches; how the batch is cut does not depend on their number. UsageError when
  // there are more ranks than micro-batches.
  explicit Trainer(const RunConfig& config, bool resuming = false, comm::Group* group = nullptr);
  ~Trainer();

  // One optimizer step. A non-finite loss or gradient, or an outlier (spike_guard.h), leaves weights, moments and
  // averages as they were (metrics.skipped).
  StepMetrics step();
  // Of the averaged weights when the config says so. Of several ranks all call it; rank 0's is the one that counts.
  // `alone` is called on rank 0 once the others have done their part.
  eval::Evaluation evaluate(const std::function<void()>& alone = {}) const;

  // DataError naming the file when the data are not what they were, unless `accept_changed_data`: then the state keeps
  // what changed, and it is returned; "" otherwise.
  std::string resume_from(const std::filesystem::path& checkpoint, bool accept_changed_data = false);
  // Notes or clears the line of the last step that could not be written (TrainerState).
  void set_unrecorded(std::string line) { state_.unrecorded = std::move(line); }
  // Lines about keys that the run goes on with another value of; the state keeps them.
  void note_edits(const std::vector<std::string>& changes);
  // By this process alone. SystemError when it has only a part of the optimizer's state (engine.shard).
  std::filesystem::path save(const std::filesystem::path& run_dir);
  // By all ranks: rank 0 calls this, the others help_save. The same as `save` when there is one process.
  std::filesystem::path save_together(const std::filesystem::path& run_dir);
  void help_save() const;
  // The same from a copy in memory, while training goes on (background_save.h). Null on a rank that is not the first:
  // rank 0 could not begin.
  std::shared_ptr<BackgroundSave> begin_save(const std::filesystem::path& run_dir) const;
  std::shared_ptr<BackgroundSave> help_begin_save() const;

  // False between the change of the weights and the end of its step: an error in between leaves what no state
  // describes.
  bool can_be_saved() const { return !updating_; }
  bool finished() const { return state_.step >= config_.train.steps; }
  const TrainerState& state() const { return state_; }
  const RunConfig& config() const { return config_; }
  const models::Model& model() const { return *model_; }
  const data::Batches& training_data() const { return *training_data_; }
  const RunTokenizer& tokenizer() const { return tokenizer_; }
  // Of several ranks, in the last step.
  GradientExchange::Times exchange_times() const { return exchange_ ? exchange_->times() : GradientExchange::Times{}; }

 private:
  // Takes over moments, averages and place in the data from init.from; DataError when they do not fit.
  void fork();
  void take_tokenizer(RunTokenizer tokenizer);
  // Forward and backward over this rank's micro-batches; the terms of each. Then the gradients are those of all ranks.
  std::vector<models::Losses> accumulate_gradients(const data::Batch& batch, SiteRecorder* recorder) const;
  RunParts parts() const { return {*model_, *optimizer_, average_, tokenizer_, weights_.get()}; }
  // What was computed, and the gradient's norm, as numbers: the one place in a step where the host waits for a device.
  void read(const std::vector<models::Losses>& made, bool record, StepMetrics& metrics) const;
  // Whether the update has to be left out, and why.
  void judge(StepMetrics& metrics);

  RunConfig config_;
  std::unique_ptr<data::Batches> training_data_;  // before the model: bad data is found in no time
  std::vector<data::HeldOutSet> test_data_;
  Classifier classifier_;
  RunTokenizer tokenizer_;
  std::optional<eval::Tasks> tasks_;
  std::unique_ptr<eval::Words> words_;  // of language models
  std::unique_ptr<models::Model> model_;
  comm::Group* group_;  // null: alone
  nn::GradientBuffer gradients_;
  Division division_;
  std::unique_ptr<GradientExchange> exchange_;  // null: alone
  std::unique_ptr<WeightParts> weights_;        // null: every rank updates all of them
  std::unique_ptr<Optimizer> optimizer_;
  WeightAverage average_;
  std::unique_ptr<data::Prefetcher> prefetcher_;  // made at the first step
  TrainerState state_;
  bool updating_ = false;
};

}  // namespace siamese::train
