#include "siamese/data/mix.h"

#include <algorithm>
#include <cmath>

namespace siamese::data {
namespace {

// log of a Gamma(shape, 1) variate: for a small shape the variate itself underflows.
double log_gamma_draw(double shape, Draws& draws) {
  if (shape < 1) {
    const double log_uniform = std::log(draws.uniform());
    return log_gamma_draw(shape + 1, draws) + log_uniform / shape;
  }
  const double d = shape - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = draws.normal();
    const double log_uniform = std::log(draws.uniform());
    const double v = (1 + c * x) * (1 + c * x) * (1 + c * x);
    if (v <= 0) continue;
    if (log_uniform < 0.5 * x * x + d - d * v + d * std::log(v)) return std::log(d * v);
  }
}

void mix_rows(std::span<float> a, std::span<float> b, float lambda) {
  for (size_t i = 0; i < a.size(); ++i) {
    const float from_a = a[i];
    const float from_b = b[i];
    a[i] = lambda * from_a + (1 - lambda) * from_b;
    b[i] = lambda * from_b + (1 - lambda) * from_a;
  }
}

void swap_box(std::span<float> a, std::span<float> b, const SampleShape& shape, const PixelBox& box) {
  for (int64_t line = 0; line < shape.channels * shape.image; ++line) {
    const int64_t y = line % shape.image;
    if (y < box.top || y >= box.bottom) continue;
    const int64_t begin = line * shape.image;
    std::swap_ranges(a.begin() + begin + box.left, a.begin() + begin + box.right, b.begin() + begin + box.left);
  }
}

// change(row i, row j) for every pair; the middle row of an odd number is its own pair and stays.
template <class Change>
void for_pairs(Batch& batch, Change change) {
  const auto width = static_cast<size_t>(batch.shape.pixels());
  const auto rows = static_cast<size_t>(batch.rows);
  const std::span images(batch.images);
  for (size_t i = 0; i < rows / 2; ++i) {
    change(images.subspan(i * width, width), images.subspan((rows - 1 - i) * width, width));
  }
}

void fill_targets(Batch& batch, double lambda, double smoothing) {
  const auto classes = static_cast<size_t>(batch.shape.classes);
  const auto rows = static_cast<size_t>(batch.rows);
  batch.targets.assign(rows * classes, static_cast<float>(smoothing / static_cast<double>(classes)));
  for (size_t i = 0; i < rows; ++i) {
    float* row = batch.targets.data() + i * classes;
    row[batch.labels[i]] += static_cast<float>(lambda * (1 - smoothing));
    row[batch.labels[rows - 1 - i]] += static_cast<float>((1 - lambda) * (1 - smoothing));
  }
}

// Mixes the images; returns the share each row keeps of itself.
double mix_images(Batch& batch, const AugmentConfig& config, Draws& draws) {
  if ((config.mixup <= 0 && config.cutmix <= 0) || !draws.chance(config.mix)) return 1;
  const bool cut = config.cutmix > 0 && (config.mixup <= 0 || draws.chance(config.switch_));
  const double lambda = beta_draw(cut ? config.cutmix : config.mixup, draws);
  if (!cut) {
    for_pairs(batch, [&](auto a, auto b) { mix_rows(a, b, static_cast<float>(lambda)); });
    return lambda;
  }
  const PixelBox box = cut_box(batch.shape.image, lambda, draws);
  for_pairs(batch, [&](auto a, auto b) { swap_box(a, b, batch.shape, box); });
  const auto area = static_cast<double>((box.right - box.left) * (box.bottom - box.top));
  return 1 - area / static_cast<double>(batch.shape.image * batch.shape.image);
}

}  // namespace

double beta_draw(double shape, Draws& draws) {
  const double a = log_gamma_draw(shape, draws);
  const double b = log_gamma_draw(shape, draws);
  return 1 / (1 + std::exp(b - a));
}

PixelBox cut_box(int64_t size, double lambda, Draws& draws) {
  const auto side = static_cast<int64_t>(static_cast<double>(size) * std::sqrt(1 - lambda));
  const int64_t x = draws.below(static_cast<int>(size));
  const int64_t y = draws.below(static_cast<int>(size));
  const auto inside = [size](int64_t place) { return std::clamp<int64_t>(place, 0, size); };
  return {inside(x - side / 2), inside(x - side / 2 + side), inside(y - side / 2), inside(y - side / 2 + side)};
}

bool has_targets(const AugmentConfig& config) { return config.mixup > 0 || config.cutmix > 0 || config.smoothing > 0; }

void mix(Batch& batch, const AugmentConfig& config, Draws& draws) {
  if (!has_targets(config)) return;
  fill_targets(batch, mix_images(batch, config, draws), config.smoothing);
}

}  // namespace siamese::data
