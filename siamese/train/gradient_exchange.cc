#include "siamese/train/gradient_exchange.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include <ATen/ATen.h>

namespace siamese::train {
namespace gradient_exchange_detail {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

template <class Number>
std::span<Number> numbers_of(const at::Tensor& row) {
  return {row.mutable_data_ptr<Number>(), static_cast<size_t>(row.numel())};
}

}  // namespace gradient_exchange_detail

GradientExchange::GradientExchange(comm::Group& group, const nn::GradientBuffer& gradients,
                                   const std::vector<int64_t>& blocks, const Division& division)
    : group_(group),
      gradients_(gradients),
      division_(division),
      segments_(row_segments(gradients, blocks, group.size())) {
  if (group.has_threads() && gradients.whole().is_cpu()) thread_ = std::thread([this] { run(); });
}

GradientExchange::~GradientExchange() {
  {
    const std::scoped_lock lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void GradientExchange::begin(bool everywhere) {
  everywhere_ = everywhere || !division_.divided();
  overlaps_ = thread_.joinable() && (everywhere_ || division_.by_segments());
  sent_.assign(segments_.size(), false);
  times_ = {};
  group_.set_patient(overlaps_);
}

void GradientExchange::passed(int64_t block) {
  if (overlaps_) send_blocks_from(block);
}

// From the end of the row, as backward goes: every rank sends in the same order.
void GradientExchange::send_blocks_from(int64_t block) {
  {
    const std::scoped_lock lock(mutex_);
    if (failed_) return;  // the others would take what comes now for something else
    for (size_t i = segments_.size(); i-- > 0;) {
      if (sent_[i] || segments_[i].block < block) continue;
      sent_[i] = true;
      open_.push_back(i);
    }
  }
  changed_.notify_all();
}

void GradientExchange::finish() {
  using namespace gradient_exchange_detail;
  const auto start = Clock::now();
  if (!overlaps_) {
    exchange_all_at_once();
    times_.exchanging = times_.waited = seconds_since(start);
    return;
  }
  group_.set_patient(false);
  send_blocks_from(RowSegment::kNoBlock);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return open_.empty(); });
  if (failed_) std::rethrow_exception(std::exchange(failed_, nullptr));
  times_.waited = std::min(seconds_since(start), times_.exchanging);
}

// The row has to be on the host.
void GradientExchange::exchange(const at::Tensor& row, size_t segment) const {
  const auto add_up = [&](auto numbers) {
    const auto begin = static_cast<size_t>(segments_[segment].begin), end = static_cast<size_t>(segments_[segment].end);
    if (everywhere_) {
      comm::sum(group_, numbers.subspan(begin, end - begin));
    } else {
      comm::sum_own(group_, numbers, division_.parts()[segment]);
    }
  };
  using namespace gradient_exchange_detail;
  row.scalar_type() == at::kDouble ? add_up(numbers_of<double>(row)) : add_up(numbers_of<float>(row));
}

void GradientExchange::exchange_all_at_once() const {
  const at::Tensor here = gradients_.whole().cpu();  // itself, where it is there already
  const auto add_up = [&](auto numbers) {
    if (everywhere_) return comm::sum(group_, numbers);
    for (const std::vector<int64_t>& borders : division_.parts()) comm::sum_own(group_, numbers, borders);
  };
  using namespace gradient_exchange_detail;
  here.scalar_type() == at::kDouble ? add_up(numbers_of<double>(here)) : add_up(numbers_of<float>(here));
  if (!here.is_same(gradients_.whole())) gradients_.whole().copy_(here);
}

void GradientExchange::run() {
  using namespace gradient_exchange_detail;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ended_ || !open_.empty(); });
    if (open_.empty()) return;
    const size_t segment = open_.front();
    lock.unlock();
    const auto start = Clock::now();
    std::exception_ptr failed;
    try {
      exchange(gradients_.whole(), segment);
    } catch (...) {
      failed = std::current_exception();
    }
    lock.lock();
    times_.exchanging += seconds_since(start);
    open_.pop_front();
    if (failed) {
      failed_ = failed;
      open_.clear();
    }
    changed_.notify_all();
  }
}

}  // namespace siamese::train
