// Sums the gradients of all ranks, block by block, while backward still works on the blocks before: a thread of its own
// talks to the other ranks in the meantime. Every element is added in the order of the ranks, whenever it goes out:
// when makes no difference to a bit.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "siamese/comm/group.h"
#include "siamese/train/division.h"
#include "siamese/train/row_segments.h"

namespace siamese::train {

class GradientExchange {
 public:
  // All of it must outlive this.
  GradientExchange(comm::Group& group, const nn::GradientBuffer& gradients, const std::vector<int64_t>& blocks,
                   const Division& division);
  ~GradientExchange();
  GradientExchange(const GradientExchange&) = delete;
  GradientExchange& operator=(const GradientExchange&) = delete;

  // Before the last backward of a step. `everywhere`: every rank gets all sums; otherwise, of a divided optimizer,
  // those of its part.
  void begin(bool everywhere);
  // In that backward: the gradients of this block and of all after it are complete (models::StackOptions::passed).
  // Returns at once.
  void passed(int64_t block);
  // After it: the rest. Returns when all sums are there. Until then nobody else talks to the other ranks.
  void finish();

  // Of the last step, in seconds: how long gradients were on their way (which counts waiting for ranks that are not as
  // far yet), and how long of that the rank had nothing else to do.
  struct Times {
    double exchanging = 0;
    double waited = 0;

    double hidden_share() const { return exchanging > 0 ? 1 - waited / exchanging : 0; }
  };
  Times times() const { return times_; }

 private:
  void send_blocks_from(int64_t block);
  void exchange(const at::Tensor& row, size_t segment) const;
  void exchange_all_at_once() const;
  void run();

  comm::Group& group_;
  const nn::GradientBuffer& gradients_;
  const Division& division_;
  std::vector<RowSegment> segments_;
  bool everywhere_ = true;
  bool overlaps_ = false;   // in this step
  std::vector<bool> sent_;  // of the segments
  Times times_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<size_t> open_;  // segments that have to go out; the first is on its way
  std::exception_ptr failed_;
  bool ended_ = false;
  std::thread thread_;  // none where the group or the device does not allow for it
};

}  // namespace siamese::train
