#include "siamese/base/check.h"

#include <string>

#include <gtest/gtest.h>

namespace siamese {
namespace {

template <class E>
Exit code_of() {
  try {
    throw E("demo.yaml: broken");
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "demo.yaml: broken");
    return error.code();
  }
}

TEST(Check, EachErrorCarriesItsExitCode) {
  EXPECT_EQ(static_cast<int>(code_of<SystemError>()), 1);
  EXPECT_EQ(static_cast<int>(code_of<UsageError>()), 2);
  EXPECT_EQ(static_cast<int>(code_of<DataError>()), 3);
  EXPECT_EQ(static_cast<int>(code_of<DivergedError>()), 4);
}

TEST(CheckDeathTest, ABrokenInvariantAbortsAndNamesTheCondition) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  SIAMESE_INVARIANT(1 + 1 == 2);
  EXPECT_DEATH(SIAMESE_INVARIANT(1 + 1 == 3), "internal error: .*check_test.cc:[0-9]+: 1 \\+ 1 == 3 does not hold");
}

}  // namespace
}  // namespace siamese
