#include "siamese/base/memory_use.h"

#include <vector>

#include <gtest/gtest.h>

namespace siamese {
namespace {

TEST(MemoryUse, PeakRemembersWhatWasGivenBack) {
  const MemoryUse before = memory_use();
  EXPECT_GT(before.resident_mb, 0);
  {
    const std::vector<char> touched(size_t{64} << 20, 1);
    EXPECT_GT(memory_use().resident_mb, before.resident_mb + 60);
  }
  EXPECT_GT(memory_use().peak_mb, before.resident_mb + 60);
}

}  // namespace
}  // namespace siamese
