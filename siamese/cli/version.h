#pragma once

#include <string>

namespace siamese::cli {

// "siamese 0.2.0, LibTorch 2.13.0, AVX3 kernels": what a result depends on beside its config.
std::string build_text();

// "siamese 0.2.0 (LibTorch 2.13.0, AVX3 kernels, 2 threads)".
std::string version_text();

}  // namespace siamese::cli
