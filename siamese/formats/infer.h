// What tensors tell of their model: the sizes, by their shapes; the family and what is switched on, by their names. In
// any layout: a tensor of theirs tells what the one of ours does that it belongs to.
#pragma once

#include "siamese/config/value.h"
#include "siamese/formats/stored.h"

namespace siamese::formats {

// Keys of the model section. `said` has what is known from elsewhere, for what the tensors tell only together with it:
// image and channels given the patch, kv_heads given the heads, classes given label_dropout, and whether attention has
// other norms than the scheme asks for. DataError when no tensor has a name of the layout.
config::Value told_by_tensors(const StoredTensors& stored, const config::Value& said);

}  // namespace siamese::formats
