#include "siamese/data/shape_outlines.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace siamese::data {
namespace {

constexpr float kPi = std::numbers::pi_v<float>;

struct Point {
  float x;
  float y;
};

float length(float x, float y) { return std::sqrt(x * x + y * y); }

// The nearest point of each edge gives the distance, the parity of edges crossed to the right the sign.
template <size_t kCorners>
float polygon(const std::array<Point, kCorners>& corners, float x, float y) {
  float nearest = 1e9F;
  bool inside = false;
  for (size_t i = 0, j = kCorners - 1; i < kCorners; j = i++) {
    const Point a = corners[j];
    const Point b = corners[i];
    const float ex = b.x - a.x;
    const float ey = b.y - a.y;
    const float along = std::clamp(((x - a.x) * ex + (y - a.y) * ey) / (ex * ex + ey * ey), 0.0F, 1.0F);
    const float dx = x - a.x - along * ex;
    const float dy = y - a.y - along * ey;
    nearest = std::min(nearest, dx * dx + dy * dy);
    if ((a.y > y) != (b.y > y) && x < a.x + ex * (y - a.y) / ey) inside = !inside;
  }
  return inside ? -std::sqrt(nearest) : std::sqrt(nearest);
}

// Corners at the given radii in turn, the first at the top.
template <size_t kCorners>
std::array<Point, kCorners> star_corners(float outer, float inner) {
  std::array<Point, kCorners> corners{};
  for (size_t i = 0; i < kCorners; ++i) {
    const float angle = 2 * kPi * static_cast<float>(i) / static_cast<float>(kCorners);
    const float radius = i % 2 == 0 ? outer : inner;
    corners[i] = {radius * std::sin(angle), -radius * std::cos(angle)};
  }
  return corners;
}

float box(float x, float y, float half_width, float half_height) {
  const float dx = std::abs(x) - half_width;
  const float dy = std::abs(y) - half_height;
  return length(std::max(dx, 0.0F), std::max(dy, 0.0F)) + std::min(std::max(dx, dy), 0.0F);
}

float circle(float x, float y) { return length(x, y) - 0.85F; }

float ring(float x, float y) { return std::abs(length(x, y) - 0.72F) - 0.2F; }

float square(float x, float y) { return box(x, y, 0.77F, 0.77F); }

float triangle(float x, float y) {
  static const std::array<Point, 3> corners = {{{0, -0.98F}, {1, 0.75F}, {-1, 0.75F}}};
  return polygon(corners, x, y);
}

float star(float x, float y) {
  static const auto corners = star_corners<10>(1.1F, 0.46F);
  return polygon(corners, x, y);
}

float plus(float x, float y) { return std::min(box(x, y, 0.98F, 0.3F), box(x, y, 0.3F, 0.98F)); }

float crescent(float x, float y) { return std::max(length(x + 0.1F, y) - 0.98F, 0.78F - length(x - 0.42F, y)); }

// Two quarter circles on a square that stands on its corner (its tip is the origin of h).
float heart(float x, float y) {
  constexpr float kScale = 0.6F;
  const float hx = std::abs(x) * kScale;
  const float hy = 0.56F - y * kScale;
  if (hx + hy > 1) return (length(hx - 0.25F, hy - 0.75F) - std::numbers::sqrt2_v<float> / 4) / kScale;
  const float foot = 0.5F * std::max(hx + hy, 0.0F);
  const float nearest = std::min(length(hx, hy - 1), length(hx - foot, hy - foot));
  return (hx > hy ? nearest : -nearest) / kScale;
}

float hexagon(float x, float y) {
  static const auto corners = star_corners<6>(0.96F, 0.96F);
  return polygon(corners, x, y);
}

float arrow(float x, float y) {
  static const std::array<Point, 7> corners = {
      {{0, -1}, {0.85F, -0.05F}, {0.3F, -0.05F}, {0.3F, 0.95F}, {-0.3F, 0.95F}, {-0.3F, -0.05F}, {-0.85F, -0.05F}}};
  return polygon(corners, x, y);
}

// Distance to first order: value of the implicit equation over the length of its gradient.
float ellipse(float x, float y) {
  constexpr float kA = 1.05F;
  constexpr float kB = 0.5F;
  const float k = length(x / kA, y / kB);
  const float gradient = length(x / (kA * kA), y / (kB * kB));
  return gradient > 0 ? k * (k - 1) / gradient : -kB;
}

// r = pitch angle / 2 pi over 1.8 turns, a stroke of fixed width with round ends.
float spiral(float x, float y) {
  constexpr float kTurns = 1.8F;
  constexpr float kPitch = 0.5F;
  constexpr float kHalfStroke = 0.135F;
  const float radius = length(x, y);
  const float turn = std::atan2(y, x) / (2 * kPi) + 0.5F;
  const float end_angle = (kTurns - 0.5F) * 2 * kPi;
  float nearest =
      std::min(radius, length(x - kPitch * kTurns * std::cos(end_angle), y - kPitch * kTurns * std::sin(end_angle)));
  for (float t = turn; t <= kTurns; t += 1) nearest = std::min(nearest, std::abs(radius - kPitch * t));
  return nearest - kHalfStroke;
}

}  // namespace

const std::array<OutlineKind, kShapeClasses> kOutlines = {{
    {"circle", circle, false, false},
    {"ring", ring, false, false},
    {"square", square},
    {"triangle", triangle},
    {"star", star},
    {"plus", plus},
    {"crescent", crescent, true, true},
    {"heart", heart},
    {"hexagon", hexagon},
    {"arrow", arrow},
    {"ellipse", ellipse},
    {"spiral", spiral, true, true},
}};

}  // namespace siamese::data
