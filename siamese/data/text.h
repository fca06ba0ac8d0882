// Any UTF-8 text files, byte by byte: the id of a byte is its value, vocab 256. Windows as in data/windows.h.
// A file that is missing, empty or not UTF-8 is a DataError naming it (and the byte offset).
#pragma once

#include <memory>

#include "siamese/data/codec.h"
#include "siamese/data/config.h"
#include "siamese/data/dataset.h"

namespace siamese::data {

std::unique_ptr<Codec> byte_codec();
std::unique_ptr<Dataset> text_dataset(const DataConfig& config, Split split, int64_t context, uint64_t seed);

}  // namespace siamese::data
