#include "python/binding/scheme_keys.h"

#include <cmath>
#include <map>
#include <mutex>
#include <sstream>

#include <ATen/ATen.h>

#include "siamese/base/check.h"
#include "siamese/base/join.h"
#include "siamese/config/fields.h"
#include "siamese/nn/expect.h"
#include "siamese/residual/registry.h"

namespace siamese::python {
namespace {

constexpr int64_t kMostBlocks = 1 << 16;
constexpr int64_t kMostWidth = int64_t{1} << 24;
constexpr size_t kParts = 8;

void check_build(const residual::Build& build) {
  nn::expect_that(build.width >= 1 && build.width <= kMostWidth, "width", "1 to " + std::to_string(kMostWidth),
                  build.width);
  nn::expect_that(build.blocks >= 1 && build.blocks <= kMostBlocks, "blocks", "1 to " + std::to_string(kMostBlocks),
                  build.blocks);
  if (!(build.norm.eps > 0 && build.norm.eps < 1)) {
    throw UsageError("eps: expected a number between 0 and 1, got " + std::to_string(build.norm.eps));
  }
  if (!(build.norm.alpha > 0 && std::isfinite(build.norm.alpha))) {
    throw UsageError("norm_alpha: expected a number > 0, got " + std::to_string(build.norm.alpha));
  }
}

residual::Build parse_build(const std::vector<std::string>& parts) {
  const auto read = [&](size_t part, const char* what, auto& out) {
    config::read(config::Value::scalar(parts[part]), what, out);
  };
  residual::Build build;
  read(1, "width", build.width);
  read(2, "blocks", build.blocks);
  read(3, "norm", build.norm.kind);
  read(4, "eps", build.norm.eps);
  int bias = 0, modulated = 0;
  read(5, "norm_alpha", build.norm.alpha);
  read(6, "bias", bias);
  read(7, "modulated", modulated);
  build.norm.bias = bias != 0;
  build.modulated = modulated != 0;
  check_build(build);
  return build;
}

std::vector<std::string> parts_of(const std::string& key) {
  std::vector<std::string> parts;
  std::stringstream stream(key);
  for (std::string part; std::getline(stream, part, '|');) parts.push_back(part);
  if (parts.size() != kParts) {
    throw UsageError("scheme key: expected " + std::to_string(kParts) + " parts apart by |, got '" + key + "'");
  }
  return parts;
}

}  // namespace

std::string scheme_key(const std::string& scheme, const residual::Build& build) {
  check_build(build);
  const auto number = [](double value) { return config::print(value).text; };
  return join({residual::canonical_scheme(scheme), std::to_string(build.width), std::to_string(build.blocks),
               std::string(enum_text(build.norm.kind)), number(build.norm.eps), number(build.norm.alpha),
               build.norm.bias ? "1" : "0", build.modulated ? "1" : "0"},
              "|");
}

KnownScheme::KnownScheme(const std::string& scheme, const residual::Build& build)
    : functional(scheme, build), width(build.width), blocks(build.blocks) {
  for (const auto& spec : functional.end_parameters()) {
    shapes_.push_back(at::empty(spec.shape, at::TensorOptions().device(at::kMeta)));
  }
}

std::vector<at::Tensor> KnownScheme::ends(const std::string& wanted, const std::vector<at::Tensor>& given) const {
  std::vector<at::Tensor> all = shapes_;
  size_t used = 0;
  const auto& specs = functional.end_parameters();
  for (size_t i = 0; i < specs.size(); ++i) {
    if (!specs[i].name.starts_with(wanted)) continue;
    if (used < given.size()) all[i] = given[used];
    ++used;
  }
  if (used == given.size()) return all;
  throw UsageError(wanted + "parameters: expected " + std::to_string(used) + " tensors, got " +
                   std::to_string(given.size()));
}

std::shared_ptr<const KnownScheme> known_scheme(const std::string& key) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const KnownScheme>, std::less<>> known;
  const std::lock_guard one_at_a_time(mutex);
  auto& scheme = known[key];
  if (scheme == nullptr) {
    try {
      const auto parts = parts_of(key);
      scheme = std::make_shared<const KnownScheme>(parts[0], parse_build(parts));
    } catch (...) {
      known.erase(key);
      throw;
    }
  }
  return scheme;
}

}  // namespace siamese::python
