#include "siamese/measure/machine.h"

#include <algorithm>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "siamese/base/check.h"
#include "siamese/measure/timing.h"

namespace siamese::measure {
namespace machine {

class ThreadsGuard {
 public:
  explicit ThreadsGuard(int threads) : before_(at::get_num_threads()) { at::set_num_threads(threads); }
  ~ThreadsGuard() { at::set_num_threads(before_); }
  ThreadsGuard(const ThreadsGuard&) = delete;
  ThreadsGuard& operator=(const ThreadsGuard&) = delete;

 private:
  int before_;
};

constexpr int kTries = 10;
constexpr int64_t kLoopGrain = 16384;

// GFLOP/s of rounds(number, sink), which returns what it did, on each thread: the best try.
double best_gflops(int threads, double (*rounds)(int64_t, float*)) {
  const ThreadsGuard guard(threads);
  constexpr int64_t kRounds = 4'000'000;  // some ten milliseconds
  double best = 0;
  for (int i = 0; i < kTries; ++i) {
    std::vector<double> flops(static_cast<size_t>(threads), 0);
    std::vector<float> sinks(static_cast<size_t>(threads), 0);
    const double seconds = seconds_of([&] {
      at::parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
        for (int64_t thread = begin; thread < end; ++thread) {
          const auto at = static_cast<size_t>(thread);
          flops[at] = rounds(kRounds, &sinks[at]);
        }
      });
    });
    double total = 0;
    for (const double done : flops) total += done;
    best = std::max(best, total / seconds * 1e-9);
  }
  return best;
}

}  // namespace machine

double fma_gflops(int threads) { return machine::best_gflops(threads, multiply_add_rounds); }

double bfloat16_gflops(int threads) { return machine::best_gflops(threads, multiply_add_pair_rounds); }

double triad_gb_per_s(int threads) {
  const machine::ThreadsGuard guard(threads);
  constexpr int64_t kElements = int64_t{1} << 24;  // 64 MB an array
  const MemoryLoop triad(2, 1, 0, kElements);
  double best = 0;
  for (int i = 0; i < machine::kTries; ++i) {
    const double seconds = seconds_of([&] { triad.run(); });
    best = std::max(best, 3 * sizeof(float) * static_cast<double>(kElements) / seconds * 1e-9);
  }
  return best;
}

MemoryLoop::MemoryLoop(int reads, int writes, int in_place, int64_t elements)
    : reads_(reads), writes_(writes), elements_(elements) {
  SIAMESE_INVARIANT(in_place <= reads && in_place <= writes);
  SIAMESE_INVARIANT(reads <= kMaxReads && writes <= kMaxWrites);
  // A little more than the elements: arrays a power of two apart would share their places in the caches.
  const int64_t stride = elements + 1088;
  memory_ = at::ones({(reads + writes - in_place) * stride}, at::kFloat);
  float* const base = memory_.mutable_data_ptr<float>();
  const auto array = [&](int index) { return base + index * stride; };
  for (int i = 0; i < reads; ++i) in_[static_cast<size_t>(i)] = array(i);
  for (int i = 0; i < writes; ++i) {
    out_[static_cast<size_t>(i)] = i < in_place ? array(i) : array(reads + i - in_place);
  }
}

void MemoryLoop::run() const {
  at::parallel_for(0, elements_, machine::kLoopGrain, [&](int64_t begin, int64_t end) {
    memory_loop(in_.data(), reads_, out_.data(), writes_, begin, end);
  });
}

}  // namespace siamese::measure
