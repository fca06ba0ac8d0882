// data.source=idx: a folder of MNIST's four files. Training: train-images-idx3-ubyte and train-labels-idx1-ubyte;
// test: t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, in data.val or else in data.train. A '.' may stand for the
// '-' before idx.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "siamese/data/config.h"
#include "siamese/data/dataset.h"
#include "siamese/data/image_set.h"

namespace siamese::data {

// The file of images and that of labels.
std::vector<std::filesystem::path> idx_files(const DataConfig& config, Split split);

// A label that is not below `classes` is a DataError with file and index.
std::unique_ptr<ImageSet> idx_set(const DataConfig& config, Split split, int64_t classes);

}  // namespace siamese::data
