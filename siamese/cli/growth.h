// How time and memory of a training step grow: configs around a base that differ from it in one respect, and the
// exponents of what was measured of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "siamese/train/config.h"

namespace siamese::cli {

// One config: the base with these overrides. `value` is blocks, width, tokens of a sample or samples of a step.
struct GrowthPoint {
  std::string axis;  // depth, width, context or batch
  bool recompute = false;
  int64_t value = 0;
  std::vector<std::string> overrides;
};

// What a step of a point took.
struct GrowthMeasure {
  double ms = 0;
  double gflop = 0;
  double activations_mb = 0;  // peak memory without the idle process and without parameters, gradients and moments
};

// y = c x^e fitted to an axis by least squares of the logarithms; NaN with fewer than two points.
struct GrowthFit {
  std::string axis;
  bool recompute = false;
  int64_t points = 0;
  double time = 0;
  double flops = 0;
  double activations = 0;
};

// Depth (with and without recomputation), width (heads and branches along with it), context and batch, from a quarter
// or half of the base to three or four times as much; a size that is not whole is left out. The samples of a pass stay
// the base's, so that depth and batch change nothing else.
std::vector<GrowthPoint> growth_points(const train::RunConfig& base);

// Of every axis in turn. `measures` belong to `points`, one each.
std::vector<GrowthFit> growth_fits(const std::vector<GrowthPoint>& points, const std::vector<GrowthMeasure>& measures);

}  // namespace siamese::cli
