// data.source=shapes: images of twelve shapes, made by the engine at any size. The shape is the class; its place, size
// and angle, the colours and textures of shape and background, what covers parts of it, brightness and noise are not.
// Training and test show no common outline (data/shape_scene.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "siamese/data/config.h"
#include "siamese/data/dataset.h"
#include "siamese/data/image_set.h"

namespace siamese::data {

std::vector<std::string> shape_names();

// Training: endless and its own for each seed, or with data.limit the first images of one fixed set. Test: endless,
// the same for every seed.
std::unique_ptr<ImageSet> shape_set(const DataConfig& config, Split split, int64_t size, uint64_t seed);

}  // namespace siamese::data
