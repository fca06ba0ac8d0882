// Images as tokens: y = W patch + b for every patch of p x p pixels, in row order.
// images: [batch, channels, size, size] -> [batch, (size / p)^2, width]. A row of W has the order of a convolution's
// filter: channel, row, column.
#pragma once

#include <ATen/core/Tensor.h>

#include "siamese/nn/linear.h"

namespace siamese::nn {

class PatchEmbed {
 public:
  PatchEmbed() = default;
  PatchEmbed(const Scope& scope, int64_t channels, int64_t patch, int64_t width, const Init& weight, const Init& bias);

  at::Tensor operator()(const at::Tensor& images) const;

 private:
  int64_t patch_ = 0;
  Slot weight_;
  Slot bias_;
};

// [batch, channels, size, size] -> [batch, patches, channels * patch * patch].
at::Tensor patches_of(const at::Tensor& images, int64_t patch);
// [batch, patches, patch * patch * channels], a patch in the order row, column, channel -> images.
at::Tensor images_of(const at::Tensor& patches, int64_t patch, int64_t channels);

}  // namespace siamese::nn
