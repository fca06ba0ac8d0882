#include "siamese/serve/bearer.h"

#include <gtest/gtest.h>

namespace siamese::serve {
namespace {

TEST(Bearer, OnlyTheToken) {
  EXPECT_TRUE(bears("Bearer secret", "secret"));
  for (const char* const wrong : {"", "secret", "Bearer ", "Bearer secre", "Bearer secrets", "Bearer Secret",
                                  "bearer secret", "Basic secret", "Bearer secretsecret", "Bearer  secret"}) {
    EXPECT_FALSE(bears(wrong, "secret")) << wrong;
  }
  EXPECT_FALSE(bears("Bearer ", ""));
}

}  // namespace
}  // namespace siamese::serve
