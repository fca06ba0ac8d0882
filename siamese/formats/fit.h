// Whether stored tensors are those of a model, no more and no less.
#pragma once

#include <string>
#include <vector>

#include "siamese/formats/mapping.h"
#include "siamese/formats/stored.h"

namespace siamese::formats {

// DataError listing every missing, unknown and misshapen tensor in the layout's names, and parts of one tensor that
// differ in dtype. A head stored beside a tied model is none of these when it equals the embedding, byte by byte.
// Returns what is worth telling: what was left out.
std::vector<std::string> check_fit(const StoredTensors& stored, const std::vector<Mapping>& mappings);

}  // namespace siamese::formats
