#include "siamese/train/pulse.h"

#include <atomic>
#include <stdexcept>

#include <gtest/gtest.h>

namespace siamese::train {
namespace pulse_test {

TEST(Pulse, BeatsWhileItIsOn) {
  std::atomic<int> beats{0};
  Pulse pulse(1e-4, [&] {
    ++beats;
    beats.notify_one();
  });
  for (int turn = 0; turn < 3; ++turn) {
    const int before = beats;
    pulse.turn_on();
    for (int now = beats; now < before + 3; now = beats) beats.wait(now);
    pulse.turn_off();
    const int after = beats;
    pulse.turn_off();
    EXPECT_EQ(beats, after) << "one was under way";
  }
}

TEST(Pulse, IsOffAtFirstAndEndsWhetherItIsOnOrNot) {
  std::atomic<int> beats{0};
  const auto beat = [&] { ++beats; };
  { const Pulse never_on(1e-4, beat); }
  EXPECT_EQ(beats, 0);
  {
    Pulse without(0, beat);
    without.turn_on();
    without.turn_off();
  }
  EXPECT_EQ(beats, 0);
  Pulse left_on(3600, beat);
  left_on.turn_on();
}

// The other side has gone: there is nobody left to tell.
TEST(Pulse, ABeatThatFailsIsTheLast) {
  std::atomic<int> beats{0};
  Pulse pulse(1e-4, [&] {
    ++beats;
    beats.notify_one();
    throw std::runtime_error("nobody there");
  });
  pulse.turn_on();
  beats.wait(0);
  pulse.turn_off();
  EXPECT_EQ(beats, 1);
}

}  // namespace pulse_test
}  // namespace siamese::train
