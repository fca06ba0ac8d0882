// A sign of life: while rank 0 does what the others have no part in (draws samples, writes a file), they wait for its
// next order, and cannot tell work that takes long from a process that was stopped or a machine that is gone. So a
// thread of rank 0 sends them something from time to time. It never talks while the thread that trains does.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace siamese::train {

class Pulse {
 public:
  // `beat` is called on a thread of its own, every `seconds` while it is on; 0: never. At first it is off.
  Pulse(double seconds, std::function<void()> beat);
  ~Pulse();
  Pulse(const Pulse&) = delete;
  Pulse& operator=(const Pulse&) = delete;

  void turn_on();
  // Returns when no beat is under way.
  void turn_off();

 private:
  void run();

  std::chrono::duration<double> period_;
  std::function<void()> beat_;
  std::mutex mutex_;  // held during a beat
  std::condition_variable changed_;
  bool on_ = false;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace siamese::train
