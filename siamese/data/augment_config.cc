#include "siamese/data/augment_config.h"

#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/data/config.h"

namespace siamese::data {
namespace {

void check_range(std::string_view key, double value, double low, double high) {
  if (value >= low && value <= high) return;
  throw UsageError(fmt::format("data.augment.{}: expected {} to {}, got {}", key, low, high, value));
}

}  // namespace

config::Use of_pixels() {
  return config::for_values("data.source", {Source::shapes, Source::idx, Source::cifar, Source::folder});
}

config::Use of_samples() {
  config::Use use = of_pixels();
  use.values.emplace_back(enum_text(Source::random));
  return use;
}

void check(const AugmentConfig& config) {
  check_range("erase", config.erase, 0, 1);
  check_range("operations", config.operations, 0, 16);
  check_range("magnitude", config.magnitude, 0, 10);
  check_range("magnitude_std", config.magnitude_std, 0, 10);
  check_range("mixup", config.mixup, 0, 100);
  check_range("cutmix", config.cutmix, 0, 100);
  check_range("mix", config.mix, 0, 1);
  check_range("switch", config.switch_, 0, 1);
  check_range("repeats", config.repeats, 1, 1000);
  if (!(config.smoothing >= 0 && config.smoothing < 1)) {
    throw UsageError(
        fmt::format("data.augment.smoothing: expected a share from 0 to below 1, got {}", config.smoothing));
  }
}

}  // namespace siamese::data
