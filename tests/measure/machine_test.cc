#include "siamese/measure/machine.h"

#include <gtest/gtest.h>

#include <ATen/Parallel.h>

namespace siamese::measure {
namespace {

TEST(Machine, RatesArePositiveAndTheThreadCountStays) {
  const int threads = at::get_num_threads();
  EXPECT_GT(fma_gflops(1), 0.1);
  EXPECT_EQ(at::get_num_threads(), threads);
}

TEST(Machine, LoopsOfEveryShapeRun) {
  for (const int in_place : {0, 1, 3}) MemoryLoop(4, 3, in_place, 100'001).run();
  MemoryLoop(1, 0, 0, 5).run();
  MemoryLoop(0, 2, 0, 5).run();
}

}  // namespace
}  // namespace siamese::measure
