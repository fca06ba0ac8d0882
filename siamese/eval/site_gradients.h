// The gradients of a site's own parameters: those named blocks.N.<kind>..., the sublayer's and its junction's.
#pragma once

#include <vector>

#include "siamese/nn/parameters.h"
#include "siamese/residual/site.h"

namespace siamese::eval {

// Those that there are.
std::vector<at::Tensor> site_gradients(const nn::Parameters& parameters, const residual::Site& site);

}  // namespace siamese::eval
