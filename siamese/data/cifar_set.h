// data.source=cifar: a folder of the binary files. CIFAR-10: data_batch_*.bin and test_batch.bin; CIFAR-100: train.bin
// and test.bin (fine labels). The names tell which of the two it is. The test file is data.val's, or else data.train's.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "siamese/data/config.h"
#include "siamese/data/dataset.h"
#include "siamese/data/image_set.h"

namespace siamese::data {

// 10 or 100 by the names in the folder; 0 when they do not tell.
int64_t cifar_classes(const std::string& folder);
// CIFAR-10's; empty for CIFAR-100.
std::vector<std::string> cifar_names(const std::string& folder);

// Those of one side, sorted. DataError when there is none.
std::vector<std::filesystem::path> cifar_files(const DataConfig& config, Split split);

// A label that is not below `classes` is a DataError with file and record.
std::unique_ptr<ImageSet> cifar_set(const DataConfig& config, Split split, int64_t classes);

}  // namespace siamese::data
