#include "siamese/data/config.h"

#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/data/codec.h"
#include "siamese/data/shapes.h"

namespace siamese::data {
namespace {

void check_test_fraction(const DataConfig& config) {
  if (!(config.test_fraction > 0 && config.test_fraction < 1)) {
    throw UsageError(fmt::format("data.test_fraction: expected a share between 0 and 1, got {}", config.test_fraction));
  }
}

void check_arithmetic(const DataConfig& config) {
  const std::string& operations = config.operations;
  for (size_t i = 0; i < operations.size(); ++i) {
    if (std::string_view("+-*").find(operations[i]) == std::string_view::npos || operations.find(operations[i]) != i) {
      throw UsageError(fmt::format("data.operations: expected some of + - *, each once, got '{}'", operations));
    }
  }
  if (operations.empty()) throw UsageError("data.operations: expected some of + - *, got nothing");
  if (config.digits < 1 || config.digits > 4) {
    throw UsageError(fmt::format("data.digits: expected 1 to 4, got {}", config.digits));
  }
  check_test_fraction(config);
}

void check_files(const DataConfig& config) {
  if (config.train.empty()) {
    throw UsageError(fmt::format("data.train: expected files for data.source={}, got none", enum_text(config.source)));
  }
  if (!(config.val_fraction >= 0 && config.val_fraction < 1)) {
    throw UsageError(fmt::format("data.val_fraction: expected a share from 0 to below 1, got {}", config.val_fraction));
  }
}

// Latents have been through an encoder: what changes pixels would not change them alike.
void check_latents(const DataConfig& config) {
  if (changes_pixels(config.augment)) {
    throw UsageError("data.augment: expected no augmentation but mixup, cutmix and smoothing for data.source=latents");
  }
}

}  // namespace

void check(const DataConfig& config) {
  if (config.limit < 0) throw UsageError(fmt::format("data.limit: expected 0 or more, got {}", config.limit));
  check(config.augment);
  switch (config.source) {
    case Source::arithmetic:
      return check_arithmetic(config);
    case Source::shapes:
      return check_test_fraction(config);
    case Source::latents:
      check_latents(config);
      return check_files(config);
    case Source::text:
    case Source::tokens:
    case Source::idx:
    case Source::cifar:
    case Source::folder:
      return check_files(config);
    case Source::random:
      break;
  }
}

DataSizes sizes_of(const DataConfig& config) {
  switch (config.source) {
    case Source::shapes:
      return {.images = true, .classes = std::ssize(shape_names()), .channels = 3};
    case Source::idx:
      return {.images = true, .classes = 10, .channels = 1};
    case Source::cifar:
      return {.images = true, .channels = 3};
    case Source::folder:
    case Source::latents:
      return {.images = true};
    case Source::arithmetic:
    case Source::text:
    case Source::tokens:
    case Source::random:
      break;
  }
  return {.vocab = make_codec(config)->vocab()};
}

std::vector<std::string> class_names(const DataConfig& config) {
  if (config.source == Source::shapes) return shape_names();
  return {};
}

}  // namespace siamese::data
