#include "siamese/data/config.h"

#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/config/fields.h"
#include "siamese/data/cifar_set.h"
#include "siamese/data/codec.h"
#include "siamese/data/files.h"
#include "siamese/data/folder_set.h"
#include "siamese/data/mixture.h"
#include "siamese/data/shapes.h"

namespace siamese::data {
namespace {

// Of every source: a key that this one does not use must be possible too.
void check_ranges(const DataConfig& config) {
  constexpr int64_t kMost = int64_t{1} << 40;
  if (config.limit < 0 || config.limit > kMost) {
    throw UsageError(fmt::format("data.limit: expected a number from 0 to {}, got {}", kMost, config.limit));
  }
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
  if (!(config.test_fraction > 0 && config.test_fraction < 1)) {
    throw UsageError(fmt::format("data.test_fraction: expected a share between 0 and 1, got {}", config.test_fraction));
  }
  if (!(config.val_fraction >= 0 && config.val_fraction < 1)) {
    throw UsageError(fmt::format("data.val_fraction: expected a share from 0 to below 1, got {}", config.val_fraction));
  }
  check(config.augment);
}

void check_files(const DataConfig& config) {
  if (config.train.empty()) {
    throw UsageError(fmt::format("data.train: expected files for data.source={}, got none", enum_text(config.source)));
  }
}

// Latents have been through an encoder: what changes an image does not change them alike.
void check_latents(const DataConfig& config) {
  const auto given = config::flatten(config::print(config.augment));
  const auto off = config::flatten(config::print(AugmentConfig{}));
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i].second == off[i].second) continue;
    throw UsageError(
        fmt::format("data.augment.{}: expected {} for data.source=latents, which are not augmented, got {}",
                    given[i].first, off[i].second, given[i].second));
  }
}

void check_folder(const DataConfig& config) {
  check_files(config);
  const auto check_one = [&](std::string_view key, size_t count) {
    if (count <= 1) return;
    throw UsageError(
        fmt::format("data.{}: expected one folder for data.source={}, got {}", key, enum_text(config.source), count));
  };
  check_one("train", config.train.size());
  check_one("val", config.val.size());
}

std::string first_folder(const DataConfig& config) { return found_below(config.base, config.train.front()); }

}  // namespace

config::Use of(std::initializer_list<Source> sources) { return config::for_values("data.source", sources); }

config::Use of_files() {
  return of({Source::text, Source::tokens, Source::idx, Source::cifar, Source::folder, Source::latents});
}

config::Use of_images() { return config::for_values("model.family", std::vector<std::string>{"vit", "dit"}); }

void check(const DataConfig& config) {
  check_ranges(config);
  switch (config.source) {
    case Source::latents:
      check_latents(config);
      return check_files(config);
    case Source::text:
    case Source::tokens:
      if (!config.mix.empty()) mix_sources(config);
      if (config.val.empty()) check_files(config);  // a source of data.mix may be held out only (open_windows)
      return;
    case Source::idx:
    case Source::cifar:
    case Source::folder:
      return check_folder(config);
    case Source::arithmetic:
    case Source::shapes:
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
      return {.images = true, .classes = config.train.empty() ? 0 : cifar_classes(first_folder(config)), .channels = 3};
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

void check_told_classes(const DataConfig& config) {
  if (config.source != Source::cifar) return;
  const DataConfig found = located(config);
  check_folders(found);
  if (cifar_classes(found.train.front()) == 0) cifar_files(found, Split::train);  // says what it looked for
}

std::vector<std::string> class_names(const DataConfig& config) {
  if (config.source == Source::shapes) return shape_names();
  if (config.train.empty()) return {};
  if (config.source == Source::cifar) return cifar_names(first_folder(config));
  if (config.source == Source::folder) return class_folders(first_folder(config));
  return {};
}

}  // namespace siamese::data
