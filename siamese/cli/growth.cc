#include "siamese/cli/growth.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "siamese/base/check.h"

namespace siamese::cli {
namespace growth_detail {

struct Factor {
  int64_t times = 1;
  int64_t over = 1;

  std::optional<int64_t> of(int64_t value) const {
    if (value * times % over != 0) return std::nullopt;
    return value * times / over;
  }
};

const std::vector<Factor> kByFours = {{1, 4}, {1, 2}, {1, 1}, {2, 1}, {4, 1}};
const std::vector<Factor> kDepths = {{1, 2}, {1, 1}, {2, 1}, {4, 1}};
const std::vector<Factor> kWidths = {{1, 2}, {1, 1}, {2, 1}, {3, 1}};
const std::vector<Factor> kImages = {{1, 2}, {1, 1}, {2, 1}};  // of the side: tokens grow by its square

std::string override_of(const char* key, int64_t value) { return fmt::format("{}={}", key, value); }

int64_t largest_divisor(int64_t number, int64_t at_most) {
  int64_t divisor = std::min(number, at_most);
  while (number % divisor != 0) --divisor;
  return divisor;
}

// Sizes that keep their proportion to the width; nothing when one of them would not be whole.
std::optional<std::vector<std::string>> widened(const models::ModelConfig& model, const Factor& factor) {
  std::vector<std::pair<const char*, int64_t>> sizes = {{"model.width", model.width},
                                                        {"model.heads", model.heads},
                                                        {"model.kv_heads", model.kv_heads},
                                                        {"model.ffn_width", model.ffn_width}};
  if (model.expert_count() > 0) sizes.emplace_back("model.shared_width", model.shared_width);
  std::vector<std::string> overrides;
  for (const auto& [key, size] : sizes) {
    const auto scaled = factor.of(size);
    if (!scaled) return std::nullopt;
    overrides.push_back(override_of(key, *scaled));
  }
  return overrides;
}

class Points {
 public:
  explicit Points(const train::RunConfig& base) : base_(base) {}

  void depth(bool recompute) {
    for (const Factor& factor : kDepths) {
      const auto blocks = factor.of(base_.model.blocks);
      if (!blocks) continue;
      add("depth", *blocks, {override_of("model.blocks", *blocks)}, recompute);
    }
  }
  void width() {
    for (const Factor& factor : kWidths) {
      const auto overrides = widened(base_.model, factor);
      if (overrides) add("width", *factor.of(base_.model.width), *overrides);
    }
  }
  void context() {
    const bool image = base_.model.sees_images();
    for (const Factor& factor : image ? kImages : kByFours) {
      const auto size = factor.of(image ? base_.model.grid() : base_.model.context);
      if (!size) continue;
      if (image) {
        const int64_t beside = base_.model.context - base_.model.grid() * base_.model.grid();  // the class token
        add("context", *size * *size + beside, {override_of("model.image", *size * base_.model.patch)});
      } else {
        add("context", *size, {override_of("model.context", *size)});
      }
    }
  }
  void batch() {
    for (const Factor& factor : kByFours) {
      const auto batch = factor.of(base_.train.batch);
      if (batch) add("batch", *batch, {override_of("train.batch", *batch)}, false, *batch);
    }
  }
  std::vector<GrowthPoint> take() { return std::move(points_); }

 private:
  void add(const char* axis, int64_t value, std::vector<std::string> overrides, bool recompute = false,
           int64_t batch = 0) {
    const int64_t rows = largest_divisor(batch > 0 ? batch : base_.train.batch, base_.train.micro_batch);
    overrides.push_back(override_of("train.micro_batch", rows));
    overrides.push_back(override_of("engine.recompute", recompute ? 1 : 0));
    points_.push_back({axis, recompute, value, std::move(overrides)});
  }

  const train::RunConfig& base_;
  std::vector<GrowthPoint> points_;
};

// The slope of the least-squares line through (log x, log y).
double exponent(const std::vector<double>& x, const std::vector<double>& y) {
  const auto count = static_cast<double>(x.size());
  double mean_x = 0, mean_y = 0, products = 0, squares = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    mean_x += std::log(x[i]) / count;
    mean_y += std::log(y[i]) / count;
  }
  for (size_t i = 0; i < x.size(); ++i) {
    products += (std::log(x[i]) - mean_x) * (std::log(y[i]) - mean_y);
    squares += (std::log(x[i]) - mean_x) * (std::log(x[i]) - mean_x);
  }
  return squares > 0 ? products / squares : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace growth_detail

std::vector<GrowthPoint> growth_points(const train::RunConfig& base) {
  growth_detail::Points points(base);
  points.depth(false);
  points.depth(true);
  points.width();
  points.context();
  points.batch();
  return points.take();
}

std::vector<GrowthFit> growth_fits(const std::vector<GrowthPoint>& points, const std::vector<GrowthMeasure>& measures) {
  SIAMESE_INVARIANT(points.size() == measures.size());
  std::vector<GrowthFit> fits;
  for (size_t first = 0; first < points.size();) {
    std::vector<double> x, ms, gflop, activations;
    const GrowthPoint& of = points[first];
    for (; first < points.size() && points[first].axis == of.axis && points[first].recompute == of.recompute; ++first) {
      x.push_back(static_cast<double>(points[first].value));
      ms.push_back(measures[first].ms);
      gflop.push_back(measures[first].gflop);
      activations.push_back(measures[first].activations_mb);
    }
    fits.push_back({of.axis, of.recompute, static_cast<int64_t>(x.size()), growth_detail::exponent(x, ms),
                    growth_detail::exponent(x, gflop), growth_detail::exponent(x, activations)});
  }
  return fits;
}

}  // namespace siamese::cli
