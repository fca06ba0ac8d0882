// Token shards made by others (io/token_file.h) as windows (data/windows.h). Tokens must be below the model's vocab.
// There is no text here: the codec reads and writes ids as numbers, "15496 995".
#pragma once

#include <memory>

#include "siamese/data/codec.h"
#include "siamese/data/config.h"
#include "siamese/data/dataset.h"

namespace siamese::data {

std::unique_ptr<Codec> token_id_codec();
std::unique_ptr<Dataset> token_dataset(const DataConfig& config, Split split, int64_t context, int64_t vocab,
                                       uint64_t seed);

}  // namespace siamese::data
