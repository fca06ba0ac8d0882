#include "siamese/nn/patch_embed.h"

#include <cmath>

#include <ATen/ATen.h>

#include "siamese/nn/expect.h"
#include "siamese/ops/linear.h"
#include "siamese/ops/operand.h"

namespace siamese::nn {

PatchEmbed::PatchEmbed(const Scope& scope, int64_t channels, int64_t patch, int64_t width, const Init& weight,
                       const Init& bias)
    : patch_(patch),
      weight_(scope.add("weight", ParameterKind::linear, {width, channels * patch * patch}, weight)),
      bias_(scope.add("bias", ParameterKind::bias, {width}, bias)) {}

at::Tensor PatchEmbed::operator()(const at::Tensor& images) const {
  const at::Tensor patches = ops::to_operand(patches_of(images, patch_));
  return ops::from_operand(ops::linear(patches, weight_.value(), bias_.value()));
}

at::Tensor patches_of(const at::Tensor& images, int64_t patch) {
  expect_shape("images", images, {-1, -1, -1, -1});
  expect_that(patch > 0 && images.size(2) % patch == 0 && images.size(3) % patch == 0, "patch",
              "a divisor of the image's sides", patch);
  const int64_t batch = images.size(0), channels = images.size(1);
  const int64_t rows = images.size(2) / patch, columns = images.size(3) / patch;
  return images.reshape({batch, channels, rows, patch, columns, patch})
      .permute({0, 2, 4, 1, 3, 5})
      .reshape({batch, rows * columns, channels * patch * patch});
}

at::Tensor images_of(const at::Tensor& patches, int64_t patch, int64_t channels) {
  expect_that(patch > 0, "patch", "1 or more", patch);
  expect_shape("patches", patches, {-1, -1, patch * patch * channels});
  const int64_t batch = patches.size(0);
  const auto grid = static_cast<int64_t>(std::lround(std::sqrt(static_cast<double>(patches.size(1)))));
  expect_that(grid * grid == patches.size(1), "patches", "a square number of them", patches.size(1));
  return patches.reshape({batch, grid, grid, patch, patch, channels})
      .permute({0, 5, 1, 3, 2, 4})
      .reshape({batch, channels, grid * patch, grid * patch});
}

}  // namespace siamese::nn
