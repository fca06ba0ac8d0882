#include "siamese/data/open_images.h"

#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/data/cifar_set.h"
#include "siamese/data/folder_set.h"
#include "siamese/data/idx_set.h"
#include "siamese/data/images.h"
#include "siamese/data/latents.h"
#include "siamese/data/random_images.h"
#include "siamese/data/shapes.h"

namespace siamese::data {
namespace {

void check_shape(const DataConfig& config, const SampleShape& shape) {
  if (shape.classes < 1) throw UsageError(fmt::format("model.classes: expected at least 1, got {}", shape.classes));
  const bool any_channels = config.source == Source::random || config.source == Source::latents;
  if (shape.channels < 1 || (!any_channels && shape.channels != 1 && shape.channels != 3)) {
    throw UsageError(fmt::format("model.channels: expected {} for data.source={}, got {}",
                                 any_channels ? "at least 1" : "1 or 3", enum_text(config.source), shape.channels));
  }
  const int64_t classes = config.source == Source::shapes ? sizes_of(config).classes : 1;
  if (shape.classes < classes) {
    throw UsageError(fmt::format("model.classes: expected at least {} for data.source={}, got {}", classes,
                                 enum_text(config.source), shape.classes));
  }
}

std::unique_ptr<LabelledSamples> open_samples(const DataConfig& config, Split split, const SampleShape& shape,
                                              uint64_t seed) {
  switch (config.source) {
    case Source::shapes:
      return image_samples(shape_set(config, split, shape.image, seed), Fit::whole, config, split, shape, seed);
    case Source::idx:
      return image_samples(idx_set(config, split, shape.classes), Fit::whole, config, split, shape, seed);
    case Source::cifar:
      return image_samples(cifar_set(config, split, shape.classes), Fit::whole, config, split, shape, seed);
    case Source::folder:
      return image_samples(folder_set(config, split, shape.classes), Fit::middle, config, split, shape, seed);
    case Source::latents:
      return latent_samples(config, split, shape);
    default:
      break;
  }
  return random_images(shape, split == Split::train ? seed : ~seed);
}

}  // namespace

std::unique_ptr<Batches> open_images(const DataConfig& config, Split split, const SampleShape& shape, uint64_t seed) {
  check(config);
  if (!sizes_of(config).images && config.source != Source::random) {
    throw UsageError(
        fmt::format("data.source: expected shapes, idx, cifar, folder, latents or random for a model of images, got {}",
                    enum_text(config.source)));
  }
  check_shape(config, shape);
  return labelled_batches(open_samples(config, split, shape, seed), config, split, shape, seed);
}

}  // namespace siamese::data
