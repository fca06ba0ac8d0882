// How many bytes of text a held-out token stands for, to tell a loss in bits per byte.
#pragma once

#include "siamese/data/config.h"

namespace siamese::data {

// 1 where tokens are bytes. Of files that `siamese prepare` wrote the mean of their side of the corpus, as its manifest
// counts it, the end-of-text tokens among them; NaN where nobody knows.
double bytes_per_token(const DataConfig& config);

}  // namespace siamese::data
