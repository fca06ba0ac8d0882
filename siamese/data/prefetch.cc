#include "siamese/data/prefetch.h"

#include "siamese/base/check.h"

namespace siamese::data {

Batch make_batch(const Dataset& dataset, int64_t context, int64_t rows, uint64_t first) {
  SIAMESE_INVARIANT(context > 0 && rows > 0);
  Batch batch;
  batch.rows = rows;
  batch.context = context;
  batch.first_position = first;
  const auto width = static_cast<size_t>(context);
  batch.tokens.resize(static_cast<size_t>(rows) * (width + 1));
  batch.weights.resize(static_cast<size_t>(rows) * width);
  for (size_t row = 0; row < static_cast<size_t>(rows); ++row) {
    dataset.sample(first + row, std::span(batch.tokens).subspan(row * (width + 1), width + 1),
                   std::span(batch.weights).subspan(row * width, width));
  }
  return batch;
}

Prefetcher::Prefetcher(const Dataset& dataset, int64_t context, int64_t rows, uint64_t start_position, int depth)
    : dataset_(dataset), context_(context), rows_(rows), depth_(static_cast<size_t>(depth)), position_(start_position) {
  SIAMESE_INVARIANT(depth > 0);
  thread_ = std::thread([this] { fill(); });
}

Prefetcher::~Prefetcher() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Batch Prefetcher::next() {
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
      Batch batch = make_batch(dataset_, context_, rows_, position_);
      position_ += static_cast<uint64_t>(rows_);
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
