// One line on stderr that says how far a verb is: on a terminal redrawn twice a second, elsewhere a new one every five
// seconds.
#pragma once

#include <chrono>
#include <string>

namespace siamese::cli {

class ProgressLine {
 public:
  ProgressLine();

  // The time is counted from now on.
  void restart();
  double seconds() const;
  // Whether it is time for the next line; who asks and is told so shows one.
  bool due();
  void show(const std::string& text);
  // Before anything else is printed, and at the end.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  bool terminal_;
  bool drawn_ = false;
  Clock::time_point start_, shown_;
};

}  // namespace siamese::cli
