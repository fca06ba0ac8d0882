// Batches made ahead of need by one background thread; where the system allows none more, when they are needed.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "siamese/data/batches.h"

namespace siamese::data {

// Batch k holds the samples from start + k * rows on. The source must outlive the prefetcher.
class Prefetcher {
 public:
  Prefetcher(const Batches& source, int64_t rows, uint64_t start_position, int depth = 2);
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // Waits for the next batch. What went wrong while making it is thrown here, after the batches before it.
  Batch next();

 private:
  void fill();
  Batch make();  // the next

  const Batches& source_;
  const int64_t rows_;
  const size_t depth_;
  uint64_t position_;  // of the batch being made; the thread's own, where there is one

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Batch> ready_;
  std::exception_ptr failure_;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses everything above
};

}  // namespace siamese::data
