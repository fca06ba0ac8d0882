// What this machine can do at best with a number of threads: what every other time is measured against.
#pragma once

#include <array>
#include <cstdint>

#include <ATen/core/Tensor.h>

#include "siamese/measure/peaks.h"

namespace siamese::measure {

// GFLOP/s of multiply-adds in registers: the best of several short tries.
double fma_gflops(int threads);

// The same of products of bfloat16; 0 where the CPU has none (kernels::has_bfloat16_products).
double bfloat16_gflops(int threads);

// GB/s of a = s b + c over arrays far larger than any cache, counted as three arrays: the best of several tries.
double triad_gb_per_s(int threads);

// A plain loop over as many arrays as some kernel has (memory_loop), run by all threads of the engine.
class MemoryLoop {
 public:
  // The first `in_place` arrays written are arrays that are read; the others are arrays of their own.
  MemoryLoop(int reads, int writes, int in_place, int64_t elements);
  void run() const;

 private:
  int reads_;
  int writes_;
  int64_t elements_;
  at::Tensor memory_;
  std::array<const float*, kMaxReads> in_{};
  std::array<float*, kMaxWrites> out_{};
};

}  // namespace siamese::measure
