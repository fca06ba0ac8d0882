#include "siamese/eval/baseline.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "siamese/eval/inputs.h"
#include "siamese/models/dit.h"

namespace siamese::eval {

void Baseline::count(int64_t target, double weight) {
  const auto place = static_cast<size_t>(target);
  if (weight_of_.size() <= place) weight_of_.resize(place + 1, 0);
  weight_of_[place] += weight;
  weight_ += weight;
}

// Sample by sample, so that the sum does not depend on how many come at a time.
void Baseline::add_zero_output(const data::Batch& batch) {
  const c10::NoGradGuard no_grad;
  const at::Tensor images = to_inputs(batch).images;
  const models::NoisedImages drawn = models::draw_noised(diffusion_, images, batch.first_position, 0);
  std::vector<int64_t> shape = images.sizes().vec();
  if (config_.learn_sigma) shape[1] *= 2;
  const models::DiffusionTerms terms = diffusion_.losses(at::zeros(shape, images.options()), images, drawn.noised,
                                                         drawn.timesteps, drawn.noise, config_.learn_sigma);
  const at::Tensor losses = (config_.learn_sigma ? terms.mse + terms.vlb : terms.mse).to(at::kDouble);
  for (int64_t row = 0; row < batch.rows; ++row) {
    sum_ += losses[row].item<double>();
    weight_ += 1;
  }
}

void Baseline::add(const data::Batch& batch) {
  if (config_.family == models::Family::dit) {
    add_zero_output(batch);
    return;
  }
  if (batch.shape.is_image()) {
    for (const int64_t label : batch.labels) count(label, 1);
    return;
  }
  const auto context = static_cast<size_t>(batch.shape.context);
  for (size_t row = 0; row < static_cast<size_t>(batch.rows); ++row) {
    for (size_t i = 0; i < context; ++i) {
      const float weight = batch.weights[row * context + i];
      if (weight > 0) count(batch.tokens[row * (context + 1) + i + 1], weight);
    }
  }
}

double Baseline::loss() const {
  if (!(weight_ > 0)) return std::numeric_limits<double>::quiet_NaN();
  if (config_.family == models::Family::dit) return sum_ / weight_;
  double entropy = 0;
  for (const double weight : weight_of_) {
    if (weight > 0) entropy -= weight / weight_ * std::log(weight / weight_);
  }
  return entropy;
}

double baseline_loss(const models::ModelConfig& config, const data::Batches& source, int64_t rows, int64_t samples) {
  if (source.samples() > 0) samples = std::min(samples, source.samples());
  Baseline baseline(config);
  for (int64_t first = 0; first < samples; first += rows) {
    baseline.add(source.batch(static_cast<uint64_t>(first), std::min(rows, samples - first)));
  }
  return baseline.loss();
}

}  // namespace siamese::eval
