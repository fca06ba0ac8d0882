#include "siamese/data/shape_scene.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "siamese/base/random.h"
#include "siamese/data/shape_outlines.h"

namespace siamese::data {
namespace {

constexpr float kScenePi = std::numbers::pi_v<float>;

Outline draw_outline(int kind, Draws& draws) {
  const OutlineKind& what = kOutlines[static_cast<size_t>(kind)];
  Outline outline{
      .kind = kind, .column = draws.below(kPlaces), .row = draws.below(kPlaces), .size = draws.below(kSizes)};
  const int degrees = draws.below(2 * kMostDegrees + 1) - kMostDegrees;
  if (what.turns) outline.degrees = degrees;
  const bool mirrored = draws.below(2) == 1;
  if (what.mirrors) outline.mirrored = mirrored;
  return outline;
}

Rgb draw_color(Draws& draws) {
  const float hue = static_cast<float>(draws.below(24)) / 4;  // 0 to 6
  const float saturation = 0.15F + 0.2F * static_cast<float>(draws.below(5));
  const float value = 0.25F + 0.1875F * static_cast<float>(draws.below(5));
  Rgb color;
  for (size_t i = 0; i < 3; ++i) {
    const float turned = std::fmod(hue + (i == 0 ? 5.0F : i == 1 ? 3.0F : 1.0F), 6.0F);
    color[i] = value - value * saturation * std::clamp(std::min(turned, 4 - turned), 0.0F, 1.0F);
  }
  return color;
}

Rgb halfway(const Rgb& a, const Rgb& b) { return {(a[0] + b[0]) / 2, (a[1] + b[1]) / 2, (a[2] + b[2]) / 2}; }

float difference(const Rgb& a, const Rgb& b) {
  return std::sqrt((a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]) + (a[2] - b[2]) * (a[2] - b[2]));
}

Texture draw_texture(Draws& draws) {
  Texture texture;
  texture.pattern = static_cast<Pattern>(draws.below(kPatterns));
  texture.first = draw_color(draws);
  texture.second = halfway(texture.first, draw_color(draws));
  texture.period = 0.12F + 0.03F * static_cast<float>(draws.below(6));
  texture.angle = kScenePi / 12 * static_cast<float>(draws.below(12));
  texture.phase = static_cast<float>(draws.below(16)) / 16;
  return texture;
}

float contrast(const Texture& a, const Texture& b) {
  return std::min({difference(a.first, b.first), difference(a.first, b.second), difference(a.second, b.first),
                   difference(a.second, b.second)});
}

// Shape and background have to differ everywhere along the edge, or there is no shape to see.
void draw_textures(Scene& scene, Draws& draws) {
  constexpr float kEnough = 0.4F;
  float best = -1;
  for (int attempt = 0; attempt < 32 && best < kEnough; ++attempt) {
    const Texture shape = draw_texture(draws);
    const Texture background = draw_texture(draws);
    if (contrast(shape, background) <= best) continue;
    best = contrast(shape, background);
    scene.shape = shape;
    scene.background = background;
  }
}

// A bar passes through, a blob bites into, the outer half of the shape.
Occluder draw_occluder(const Scene& scene, Draws& draws) {
  Occluder occluder;
  occluder.bar = draws.chance(0.5);
  occluder.color = draw_color(draws);
  const auto direction = static_cast<float>(draws.between(0, 2 * kScenePi));
  const auto distance = scene.radius() * static_cast<float>(draws.between(0.5, 1.1));
  occluder.x = scene.x() + distance * std::cos(direction);
  occluder.y = scene.y() + distance * std::sin(direction);
  const auto thickness = static_cast<float>(draws.between(0.025, 0.05));
  const float angle = occluder.bar ? direction + kScenePi / 2 + static_cast<float>(draws.between(-0.4, 0.4))
                                   : static_cast<float>(draws.between(0, kScenePi));
  occluder.cosine = std::cos(angle);
  occluder.sine = std::sin(angle);
  if (occluder.bar) {
    occluder.half_width = 2;
    occluder.half_height = thickness;
  } else {
    occluder.half_width = 2.4F * thickness;
    occluder.half_height = 1.6F * thickness;
  }
  return occluder;
}

}  // namespace

Outline mirror_image(const Outline& outline) {
  Outline other = outline;
  other.column = kPlaces - 1 - outline.column;
  other.degrees = -outline.degrees;
  other.mirrored = kOutlines[static_cast<size_t>(outline.kind)].mirrors && !outline.mirrored;
  return other;
}

Split side_of(const Outline& outline, double test_fraction) {
  const Outline one = std::min(outline, mirror_image(outline));
  uint64_t key = static_cast<uint64_t>(one.kind);
  for (const int part : {one.column, one.row, one.size, one.degrees + kMostDegrees, static_cast<int>(one.mirrored)}) {
    key = key * 64 + static_cast<uint64_t>(part);
  }
  return random_uniform(hash_text("data.shapes.split"), 0, key) < test_fraction ? Split::test : Split::train;
}

float Scene::radius() const { return 0.26F + 0.02F * static_cast<float>(outline.size); }

// The shape stays inside the image but for its outermost corners.
float Scene::x() const {
  return radius() + (1 - 2 * radius()) * static_cast<float>(outline.column) / static_cast<float>(kPlaces - 1);
}
float Scene::y() const {
  return radius() + (1 - 2 * radius()) * static_cast<float>(outline.row) / static_cast<float>(kPlaces - 1);
}

Scene draw_scene(Split split, double test_fraction, uint64_t seed, uint64_t index) {
  Draws draws(seed, index);
  Scene scene;
  const int kind = draws.below(kShapeClasses);  // once: the classes stay balanced whatever the split leaves of them
  do {
    scene.outline = draw_outline(kind, draws);
  } while (side_of(scene.outline, test_fraction) != split);
  draw_textures(scene, draws);
  scene.occluders = draws.below(3);
  for (int i = 0; i < scene.occluders; ++i) scene.occluder[static_cast<size_t>(i)] = draw_occluder(scene, draws);
  scene.brightness = static_cast<float>(draws.between(0.7, 1.1));
  scene.noise = static_cast<float>(draws.between(0, 0.1));
  scene.noise_seed = draws.word();
  return scene;
}

}  // namespace siamese::data
