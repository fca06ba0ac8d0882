#include "siamese/base/thread_room.h"

#include "tests/support/limited_child.h"
#include <gtest/gtest.h>

namespace siamese {
namespace {

TEST(ThreadRoom, WhereThereIsRoomAllStart) {
  EXPECT_EQ(startable_threads(0), 0);
  EXPECT_EQ(startable_threads(5), 5);
}

TEST(ThreadRoom, ALimitIsMetWithoutHarmAndNamed) {
  EXPECT_TRUE(holds_as_nobody([] {
    allow_no_more_threads();
    return startable_threads(4) == 0 && thread_limits().find("ulimit -u 0") != std::string::npos;
  }));
}

}  // namespace
}  // namespace siamese
