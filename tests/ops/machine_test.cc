#include "siamese/ops/machine.h"

#include <gtest/gtest.h>

#include <ATen/Parallel.h>

namespace siamese::ops {
namespace {

TEST(Machine, RatesArePositiveAndTheThreadCountStays) {
  const int threads = at::get_num_threads();
  EXPECT_GT(fma_gflops(1), 0.1);
  EXPECT_EQ(at::get_num_threads(), threads);
}

TEST(Machine, StreamLoopsOfEveryShapeRun) {
  for (const int in_place : {0, 1, 3}) StreamLoop(4, 3, in_place, 100'001).run();
  StreamLoop(1, 0, 0, 5).run();
  StreamLoop(0, 2, 0, 5).run();
}

}  // namespace
}  // namespace siamese::ops
