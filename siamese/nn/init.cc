#include "siamese/nn/init.h"

#include <cmath>

namespace siamese::nn {
namespace {

double rule_std(const InitConfig& config, double width) {
  if (config.std > 0) return config.std;
  switch (config.rule) {
    case InitRule::full_megatron:
      return std::sqrt(2 / (5 * width));
    case InitRule::mitchell:
      return 1 / std::sqrt(width);
    case InitRule::normal:
    case InitRule::xavier:
      break;
  }
  return 0.02;
}

Init xavier(int64_t fan_in, int64_t fan_out) {
  return Init::uniform(std::sqrt(6 / static_cast<double>(fan_in + fan_out)));
}

}  // namespace

Initializer::Initializer(const InitConfig& config, int64_t width, int64_t blocks)
    : rule_(config.rule),
      std_(rule_std(config, static_cast<double>(width))),
      cut_(config.cut),
      width_(static_cast<double>(width)),
      blocks_(static_cast<double>(blocks)) {}

Init Initializer::embedding() const { return normal(std_); }

Init Initializer::head() const { return normal(rule_ == InitRule::full_megatron ? 1 / std::sqrt(width_) : std_); }

Init Initializer::input_projection(int64_t fan_in, int64_t fan_out) const {
  return rule_ == InitRule::xavier ? xavier(fan_in, fan_out) : normal(std_);
}

Init Initializer::output_projection(int64_t fan_in, int64_t fan_out, int64_t block, bool depth_factor) const {
  switch (rule_) {
    case InitRule::full_megatron:
      return normal(depth_factor ? std_ / std::sqrt(2 * blocks_) : std_);
    case InitRule::mitchell: {
      const double depth = depth_factor ? 2 * static_cast<double>(block + 1) : 1;
      return normal(1 / std::sqrt(depth * static_cast<double>(fan_in)));
    }
    case InitRule::xavier:
      return xavier(fan_in, fan_out);
    case InitRule::normal:
      break;
  }
  return normal(std_);
}

}  // namespace siamese::nn
