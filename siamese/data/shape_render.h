// A scene as pixels: background, shape and occluders laid over each other by how much of a pixel each covers
// (its distance to the edge, in pixels, cut to one), then brightness and noise.
#pragma once

#include "siamese/data/shape_scene.h"
#include "siamese/io/image.h"

namespace siamese::data {

// RGB, `size` x `size`.
io::Image render(const Scene& scene, int64_t size);

}  // namespace siamese::data
