// A small model of any family and scheme with samples to look at, for the tests of what an analysis measures.
#pragma once

#include <functional>

#include "tests/models/small_families.h"
#include "tests/support/tensors.h"

#include "siamese/eval/look.h"

namespace siamese::eval::analysing {

using models::Family;

// Six samples of any family; of text, the first tokens of a sample do not count.
class SixSamples : public data::Batches {
 public:
  explicit SixSamples(const models::ModelConfig& config) : config_(config) {}
  int64_t samples() const override { return 6; }
  std::string describe() const override { return "six samples"; }
  data::Batch batch(uint64_t first, int64_t rows) const override {
    data::Batch batch;
    batch.rows = rows;
    batch.first_position = first;
    if (config_.sees_images()) {
      batch.shape = {.image = config_.image, .channels = config_.channels, .classes = config_.classes};
      for (int64_t row = 0; row < rows; ++row) {
        const uint64_t position = first + static_cast<uint64_t>(row);
        const at::Tensor image = testing::randn({batch.shape.pixels()}, position, at::kFloat);
        batch.images.insert(batch.images.end(), image.const_data_ptr<float>(),
                            image.const_data_ptr<float>() + image.numel());
        batch.labels.push_back(static_cast<int64_t>(position) % config_.classes);
      }
      return batch;
    }
    batch.shape = {.context = config_.context, .vocab = config_.vocab};
    for (int64_t row = 0; row < rows; ++row) {
      const uint64_t position = first + static_cast<uint64_t>(row);
      for (int64_t i = 0; i <= config_.context; ++i) {
        batch.tokens.push_back(static_cast<int64_t>(
            random_below(static_cast<uint64_t>(config_.vocab), 9, position, static_cast<uint64_t>(i))));
        if (i < config_.context) batch.weights.push_back(i < 2 ? 0.0F : 1.0F);
      }
    }
    return batch;
  }

 private:
  models::ModelConfig config_;
};

inline std::unique_ptr<models::Model> worn_model(const models::ModelConfig& config) {
  auto model = models::make_small(config);
  const at::NoGradGuard no_grad;
  uint64_t seed = 300;
  for (const auto& parameter : model->parameters().list()) {
    parameter.value.add_(testing::randn(parameter.value.sizes(), seed++).to(at::kFloat) * 0.1);
  }
  return model;
}

class Hooks : public models::Intervention {
 public:
  size_t first_site() const override { return first; }
  residual::Streams between(size_t next, residual::Streams streams) override {
    residual::Streams now = residual::flush(streams);
    kept.push_back(now);
    return change ? change(next, now) : now;
  }
  at::Tensor input(const residual::Site& site, at::Tensor input) override {
    return see_input ? see_input(site, input) : input;
  }

  size_t first = 0;
  std::function<residual::Streams(size_t, residual::Streams)> change;
  std::function<at::Tensor(const residual::Site&, const at::Tensor&)> see_input;
  std::vector<residual::Streams> kept;
};

// What all tests look at: a model of `scheme` and its first four samples as one batch.
struct Case {
  explicit Case(const std::string& scheme, Family family = Family::lm) : Case(models::small_family(family, scheme)) {}
  explicit Case(const models::ModelConfig& of)
      : config(of), model(worn_model(config)), samples(config), batch(*model, samples.batch(0, 4)) {}

  double loss(models::Intervention* change) const {
    const at::NoGradGuard no_grad;
    return model->losses(batch.inputs, {.stack = {.intervention = change}}).loss.item<double>() / batch.weight;
  }
  std::vector<residual::Streams> streams() const {
    const at::NoGradGuard no_grad;
    Hooks hooks;
    model->state(batch.given, {.intervention = &hooks});
    return hooks.kept;
  }

  models::ModelConfig config;
  std::unique_ptr<models::Model> model;
  SixSamples samples;
  GivenBatch batch;
};

inline runs::AnalysisRecord looked(const Case& of, int64_t lens_tokens) {
  Look look(*of.model);
  look.add(GivenBatch(*of.model, of.samples.batch(0, 1)), lens_tokens / 4, 0);  // in pieces, as in life
  look.add(GivenBatch(*of.model, of.samples.batch(1, 3)), lens_tokens / 4 * 3, 1);
  runs::AnalysisRecord record;
  record.blocks = of.config.blocks;
  look.fill(record);
  return record;
}

}  // namespace siamese::eval::analysing
