#include "siamese/data/config.h"

#include <fmt/format.h>

#include "siamese/base/check.h"

namespace siamese::data {
namespace {

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
  if (!(config.test_fraction > 0 && config.test_fraction < 1)) {
    throw UsageError(fmt::format("data.test_fraction: expected a share between 0 and 1, got {}", config.test_fraction));
  }
}

void check_files(const DataConfig& config) {
  if (config.train.empty()) {
    throw UsageError(fmt::format("data.train: expected files for data.source={}, got none", enum_text(config.source)));
  }
  if (!(config.val_fraction >= 0 && config.val_fraction < 1)) {
    throw UsageError(fmt::format("data.val_fraction: expected a share from 0 to below 1, got {}", config.val_fraction));
  }
}

}  // namespace

void check(const DataConfig& config) {
  switch (config.source) {
    case Source::arithmetic:
      return check_arithmetic(config);
    case Source::text:
    case Source::tokens:
      return check_files(config);
    case Source::random:
      break;
  }
}

}  // namespace siamese::data
