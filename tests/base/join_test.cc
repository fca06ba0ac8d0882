#include "siamese/base/join.h"

#include <gtest/gtest.h>

namespace siamese {
namespace {

TEST(Join, PutsTheSeparatorBetween) {
  EXPECT_EQ(join({}), "");
  EXPECT_EQ(join({"a"}), "a");
  EXPECT_EQ(join({"a", "b", "c"}), "a, b, c");
  EXPECT_EQ(join({"a", "", "c"}, "|"), "a||c");
}

}  // namespace
}  // namespace siamese
