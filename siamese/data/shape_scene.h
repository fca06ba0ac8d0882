// What one image of data.source=shapes shows. The class is the outline's kind; everything else is drawn independently
// of it. Split: an outline (kind, place, size, angle; all in few steps) lies on one side by its hash, together with its
// mirror image, the same for every seed: no outline of the test side is ever seen in training, in whatever colours,
// mirrored or not.
#pragma once

#include <array>
#include <cstdint>

#include "siamese/data/dataset.h"
#include "siamese/data/draws.h"

namespace siamese::data {

inline constexpr int kPlaces = 16;  // columns, and rows
inline constexpr int kSizes = 8;
inline constexpr int kMostDegrees = 25;  // either way

struct Outline {
  int kind = 0;
  int column = 0;
  int row = 0;
  int size = 0;
  int degrees = 0;
  bool mirrored = false;
  auto operator<=>(const Outline&) const = default;
};

Outline mirror_image(const Outline& outline);
Split side_of(const Outline& outline, double test_fraction);

using Rgb = std::array<float, 3>;  // 0 to 1

enum class Pattern { plain, stripes, checks, dots, noise, gradient };
inline constexpr int kPatterns = 6;

// Two colours, and how they lie: `period` as a share of the image, `angle` in radians, `phase` of a period.
struct Texture {
  Pattern pattern = Pattern::plain;
  Rgb first{};
  Rgb second{};
  float period = 0;
  float angle = 0;
  float phase = 0;
};

// A bar across the image, or a blob (an ellipse). Place and radii as shares of the image.
struct Occluder {
  bool bar = false;
  Rgb color{};
  float x = 0;
  float y = 0;
  float half_width = 0;
  float half_height = 0;
  float cosine = 1;  // of its angle
  float sine = 0;
};

struct Scene {
  Outline outline;
  Texture shape;
  Texture background;
  int occluders = 0;
  std::array<Occluder, 2> occluder;
  float brightness = 1;
  float noise = 0;  // largest deviation of a channel
  uint64_t noise_seed = 0;

  float radius() const;  // shares of the image
  float x() const;
  float y() const;
};

Scene draw_scene(Split split, double test_fraction, uint64_t seed, uint64_t index);

}  // namespace siamese::data
