// The loss of predicting without looking, on the very targets of an evaluation: what a model has to get below before it
// has learned anything. It depends on the data alone, not on the model.
//   lm, moe   the entropy of the counted targets: the best that one and the same distribution for every token can do.
//             (Of n targets with k different tokens it lies about (k - 1) / 2n below that of text without end.)
//   vit       the entropy of the labels: the best that always giving the same class probabilities can do
//   dit       the loss of an output of 0: no noise predicted, the variance in the middle of its range
#pragma once

#include <vector>

#include "siamese/data/batches.h"
#include "siamese/models/config.h"
#include "siamese/models/diffusion.h"

namespace siamese::eval {

class Baseline {
 public:
  explicit Baseline(const models::ModelConfig& config) : config_(config) {}

  void add(const data::Batch& batch);
  // Over all that was added; NaN when no target counted.
  double loss() const;

 private:
  void count(int64_t target, double weight);
  void add_zero_output(const data::Batch& batch);

  models::ModelConfig config_;
  models::Diffusion diffusion_;
  std::vector<double> weight_of_;  // by token or class
  double weight_ = 0;
  double sum_ = 0;  // dit: of the samples' losses
};

// Of the first `samples` of the set, or of all of it when it is smaller, `rows` at a time.
double baseline_loss(const models::ModelConfig& config, const data::Batches& source, int64_t rows, int64_t samples);

}  // namespace siamese::eval
