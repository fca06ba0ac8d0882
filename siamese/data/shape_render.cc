#include "siamese/data/shape_render.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "siamese/base/random.h"
#include "siamese/data/shape_outlines.h"

namespace siamese::data {
namespace {

float covered(float distance_in_pixels) { return std::clamp(0.5F - distance_in_pixels, 0.0F, 1.0F); }
float fraction(float value) { return value - std::floor(value); }

// A texture with what is the same for all pixels worked out.
class Painter {
 public:
  Painter(const Texture& texture, int64_t size, uint64_t seed)
      : texture_(texture),
        cosine_(std::cos(texture.angle) / texture.period),
        sine_(std::sin(texture.angle) / texture.period),
        period_pixels_(texture.period * static_cast<float>(size)) {
    if (texture.pattern != Pattern::noise) return;
    for (size_t i = 0; i < lattice_.size(); i += 4) {
      const auto words = random_words(seed, 1, i);
      for (size_t j = 0; j < 4; ++j) lattice_[i + j] = static_cast<float>(words[j] >> 8) / 16777216.0F;
    }
  }

  // x, y as shares of the image.
  Rgb at(float x, float y) const {
    const float share = mixture(x, y);
    Rgb color;
    for (size_t i = 0; i < 3; ++i) color[i] = texture_.first[i] + share * (texture_.second[i] - texture_.first[i]);
    return color;
  }

 private:
  // How much of the second colour.
  float mixture(float x, float y) const {
    const float u = cosine_ * x + sine_ * y + texture_.phase;
    const float v = cosine_ * y - sine_ * x + texture_.phase;
    switch (texture_.pattern) {
      case Pattern::plain:
        return 0;
      case Pattern::stripes:
        return stripe(u);
      case Pattern::checks: {
        const float across = stripe(u);
        const float down = stripe(v);
        return across + down - 2 * across * down;
      }
      case Pattern::dots: {
        const float du = fraction(u) - 0.5F;
        const float dv = fraction(v) - 0.5F;
        return covered((std::sqrt(du * du + dv * dv) - 0.3F) * period_pixels_);
      }
      case Pattern::noise:
        return lattice_noise(x, y);
      case Pattern::gradient:
        break;
    }
    return std::clamp(0.5F + (u - texture_.phase) * texture_.period - 0.5F * (cosine_ + sine_) * texture_.period, 0.0F,
                      1.0F);
  }

  float stripe(float u) const { return covered((std::abs(fraction(u) - 0.5F) - 0.25F) * period_pixels_); }

  float lattice_noise(float x, float y) const {
    const float u = x * (kLattice - 1.001F);
    const float v = y * (kLattice - 1.001F);
    const auto column = static_cast<size_t>(u);
    const auto row = static_cast<size_t>(v);
    const float right = u - static_cast<float>(column);
    const float down = v - static_cast<float>(row);
    const float* corner = lattice_.data() + row * kLattice + column;
    return (1 - down) * ((1 - right) * corner[0] + right * corner[1]) +
           down * ((1 - right) * corner[kLattice] + right * corner[kLattice + 1]);
  }

  static constexpr size_t kLattice = 10;
  const Texture& texture_;
  float cosine_;
  float sine_;
  float period_pixels_;
  std::array<float, kLattice * kLattice> lattice_{};
};

// The scene's outline as a function of the place in the image.
class Placed {
 public:
  explicit Placed(const Scene& scene)
      : distance_(kOutlines[static_cast<size_t>(scene.outline.kind)].distance),
        radius_(scene.radius()),
        x_(scene.x()),
        y_(scene.y()),
        flip_(scene.outline.mirrored ? -1.0F : 1.0F) {
    const float angle = static_cast<float>(scene.outline.degrees) * std::numbers::pi_v<float> / 180;
    cosine_ = std::cos(angle) / radius_;
    sine_ = std::sin(angle) / radius_;
  }

  // In shares of the image.
  float distance(float x, float y) const {
    const float dx = x - x_;
    const float dy = y - y_;
    const float far = 1.3F * radius_;  // beyond every outline: no need to look closer
    if (dx * dx + dy * dy > far * far) return radius_;
    return distance_(flip_ * (cosine_ * dx + sine_ * dy), cosine_ * dy - sine_ * dx) * radius_;
  }

 private:
  float (*distance_)(float, float);
  float radius_;
  float x_;
  float y_;
  float flip_;
  float cosine_ = 1;
  float sine_ = 0;
};

float occluder_distance(const Occluder& occluder, float x, float y) {
  const float dx = x - occluder.x;
  const float dy = y - occluder.y;
  const float u = occluder.cosine * dx + occluder.sine * dy;
  const float v = occluder.cosine * dy - occluder.sine * dx;
  if (occluder.bar) return std::abs(v) - occluder.half_height;
  const float k = std::sqrt(u * u / (occluder.half_width * occluder.half_width) +
                            v * v / (occluder.half_height * occluder.half_height));
  return (k - 1) * occluder.half_height;
}

void lay_over(Rgb& under, const Rgb& color, float share) {
  for (size_t i = 0; i < 3; ++i) under[i] += share * (color[i] - under[i]);
}

// Each channel moves by up to scene.noise either way, evenly.
void add_noise(io::Image& image, const Scene& scene) {
  const float scale = 255 * scene.noise / 128;
  for (size_t i = 0; i < image.pixels.size(); i += 16) {
    const auto words = random_words(scene.noise_seed, 2, i);
    for (size_t j = 0; j < 16 && i + j < image.pixels.size(); ++j) {
      const auto byte = static_cast<float>((words[j / 4] >> (8 * (j % 4))) & 255U);
      const float value = static_cast<float>(image.pixels[i + j]) + (byte - 127.5F) * scale;
      image.pixels[i + j] = static_cast<uint8_t>(std::clamp(value + 0.5F, 0.0F, 255.0F));
    }
  }
}

}  // namespace

io::Image render(const Scene& scene, int64_t size) {
  const Painter background(scene.background, size, scene.noise_seed);
  const Painter shape(scene.shape, size, ~scene.noise_seed);
  const Placed outline(scene);
  const auto pixels = static_cast<float>(size);
  io::Image image(size, size, 3);
  for (int64_t row = 0; row < size; ++row) {
    for (int64_t column = 0; column < size; ++column) {
      const float x = (static_cast<float>(column) + 0.5F) / pixels;
      const float y = (static_cast<float>(row) + 0.5F) / pixels;
      Rgb color{};
      const float share = covered(outline.distance(x, y) * pixels);
      if (share < 1) color = background.at(x, y);
      if (share > 0) lay_over(color, shape.at(x, y), share);
      for (int i = 0; i < scene.occluders; ++i) {
        const Occluder& occluder = scene.occluder[static_cast<size_t>(i)];
        lay_over(color, occluder.color, covered(occluder_distance(occluder, x, y) * pixels));
      }
      uint8_t* pixel = image.at(column, row);
      for (size_t i = 0; i < 3; ++i) {
        pixel[i] = static_cast<uint8_t>(std::clamp(color[i] * scene.brightness * 255 + 0.5F, 0.0F, 255.0F));
      }
    }
  }
  add_noise(image, scene);
  return image;
}

}  // namespace siamese::data
