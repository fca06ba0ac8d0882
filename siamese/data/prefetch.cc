#include "siamese/data/prefetch.h"

#include <system_error>

#include "siamese/base/check.h"

namespace siamese::data {

Prefetcher::Prefetcher(const Batches& source, int64_t rows, uint64_t start_position, int depth)
    : source_(source), rows_(rows), depth_(static_cast<size_t>(depth)), position_(start_position) {
  SIAMESE_INVARIANT(depth > 0);
  try {
    thread_ = std::thread([this] { fill(); });
  } catch (const std::system_error&) {  // as many threads as this user may have: batches are made when asked for
  }
}

Prefetcher::~Prefetcher() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Batch Prefetcher::make() {
  Batch batch = source_.batch(position_, rows_);
  position_ += static_cast<uint64_t>(rows_);
  return batch;
}

Batch Prefetcher::next() {
  if (!thread_.joinable()) return make();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !ready_.empty() || failure_; });
  if (ready_.empty()) std::rethrow_exception(failure_);
  Batch batch = std::move(ready_.front());
  ready_.pop_front();
  lock.unlock();
  changed_.notify_all();
  return batch;
}

void Prefetcher::fill() {
  try {
    while (true) {
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stopping_ || ready_.size() < depth_; });
        if (stopping_) return;
      }
      Batch batch = make();
      {
        const std::lock_guard lock(mutex_);
        ready_.push_back(std::move(batch));
      }
      changed_.notify_all();
    }
  } catch (...) {
    {
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
    }
    changed_.notify_all();
  }
}

}  // namespace siamese::data
