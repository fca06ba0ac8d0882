#pragma once

#include <string>

#include "siamese/train/config.h"

namespace siamese::cli {

// "siamese 0.2.0 (ace3985330), LibTorch 2.13.0, AVX3 kernels, bfloat16 AVX512-BF16, 2 threads".
std::string version_text();

// Which fast products of bfloat16 this CPU has: "AVX512-BF16", "AVX512-BF16 and AMX", or "none".
std::string fast_bfloat16();

// To stderr, if engine.precision is slow on this CPU: one line that says so.
void warn_of_slow_precision(const train::EngineConfig& engine);

}  // namespace siamese::cli
