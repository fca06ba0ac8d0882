#include "siamese/train/classifier.h"

#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/train/config_origin.h"
#include "siamese/train/device.h"

namespace siamese::train {
namespace {

std::string images_text(const RunConfig& config) {
  return fmt::format("{0} x {0} images of {1} channels, {2} classes, data.normalize {3}", config.model.image,
                     config.model.channels, config.model.classes, enum_text(config.data.normalize));
}

}  // namespace

Classifier::Classifier(const RunConfig& config) {
  const std::string path = located(config, config.eval.classifier);
  if (path.empty() || config.model.family != models::Family::dit) return;
  try {
    LoadedModel loaded = load_model(path, Weights::trained, at::kFloat, 0, device_of(config.engine));
    if (loaded.config.model.family != models::Family::vit) {
      throw DataError(path + ": expected a model of family vit, got " +
                      std::string(enum_text(loaded.config.model.family)));
    }
    const std::string expected = images_text(config), got = images_text(loaded.config);
    if (expected != got) throw DataError(path + ": expected a classifier of " + expected + ", got " + got);
    loaded_ = std::move(loaded.model);
  } catch (const DataError& error) {
    throw DataError(std::string("eval.classifier: ") + error.what());
  }
}

const models::VisionTransformer* Classifier::model() const {
  return dynamic_cast<const models::VisionTransformer*>(loaded_.get());
}

}  // namespace siamese::train
