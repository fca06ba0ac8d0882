#include "siamese/cli/version.h"

#include <fmt/format.h>

#include <torch/version.h>

#include "siamese/kernels/simd.h"
#include "siamese/train/config.h"

namespace siamese::cli {

std::string build_text() {
  return fmt::format("siamese {}, LibTorch {}, {} kernels", SIAMESE_VERSION, TORCH_VERSION, kernels::simd_level());
}

std::string version_text() {
  return fmt::format("siamese {} (LibTorch {}, {} kernels, {} threads)", SIAMESE_VERSION, TORCH_VERSION,
                     kernels::simd_level(), train::core_count());
}

}  // namespace siamese::cli
