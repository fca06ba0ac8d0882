// The vision model that judges what a diffusion model draws: eval.classifier.
#pragma once

#include <memory>

#include "siamese/models/vit.h"
#include "siamese/train/checkpoint.h"

namespace siamese::train {

class Classifier {
 public:
  Classifier() = default;  // none
  // Loads config.eval.classifier, if it names one; DataError or UsageError when it is no vit model, or sees images of
  // another size, scale or set of classes than `config`'s model draws.
  explicit Classifier(const RunConfig& config);

  const models::VisionTransformer* model() const;  // null: none

 private:
  std::unique_ptr<models::Model> loaded_;
};

}  // namespace siamese::train
