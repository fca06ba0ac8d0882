// The outlines of data.source=shapes: for each class the signed distance to its edge, negative inside, where the shape
// lies about within radius 1 around the origin (y down). Turned by 25 degrees or mirrored, each still looks like its
// own class only.
#pragma once

#include <array>
#include <string_view>

namespace siamese::data {

struct OutlineKind {
  std::string_view name;
  float (*distance)(float x, float y);
  bool turns = true;     // false: turning it changes nothing
  bool mirrors = false;  // true: its mirror image is another outline
};

inline constexpr int kShapeClasses = 12;

// The index is the class.
extern const std::array<OutlineKind, kShapeClasses> kOutlines;

}  // namespace siamese::data
