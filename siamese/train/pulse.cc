#include "siamese/train/pulse.h"

#include <exception>

namespace siamese::train {

Pulse::Pulse(double seconds, std::function<void()> beat) : period_(seconds), beat_(std::move(beat)) {
  if (seconds > 0) thread_ = std::thread([this] { run(); });
}

Pulse::~Pulse() {
  {
    const std::scoped_lock lock(mutex_);
    ended_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Pulse::turn_on() {
  {
    const std::scoped_lock lock(mutex_);
    on_ = true;
  }
  changed_.notify_one();
}

// Nobody has to be woken: the thread looks when its time comes.
void Pulse::turn_off() {
  const std::scoped_lock lock(mutex_);
  on_ = false;
}

void Pulse::run() {
  std::unique_lock lock(mutex_);
  while (!ended_) {
    changed_.wait(lock, [this] { return on_ || ended_; });
    const bool stays_on = !changed_.wait_for(lock, period_, [this] { return !on_ || ended_; });
    if (!stays_on) continue;
    try {
      beat_();
    } catch (const std::exception&) {  // who talks next learns of it, too
      on_ = false;
    }
  }
}

}  // namespace siamese::train
