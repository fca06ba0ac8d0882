#pragma once

#include <string>

namespace siamese::cli {

// "siamese 0.1.0 (LibTorch 2.13.0, AVX3 kernels, 2 threads)".
std::string version_text();

}  // namespace siamese::cli
