// Curves of any length as a bounded number of buckets that keep every extreme.
// All runs of a page share one grid, so seeds can be averaged bucket by bucket:
//   the first kFineSteps steps each have a bucket of their own (a log axis shows them wide),
//   the later ones share buckets of `width` steps, kCoarseBuckets at most.
// A page of at most kExactSteps steps is kept step by step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace siamese::report {

class StepGrid {
 public:
  static constexpr int64_t kExactSteps = 2000;
  static constexpr int64_t kFineSteps = 200;
  static constexpr int64_t kCoarseBuckets = 900;

  explicit StepGrid(int64_t last_step);  // steps run from 1 to last_step

  int64_t size() const { return size_; }
  int64_t width() const { return width_; }
  bool exact() const { return width_ == 1; }
  int64_t bucket(int64_t step) const;
  int64_t first_step(int64_t bucket) const;
  int64_t last_step(int64_t bucket) const;

 private:
  int64_t last_step_;
  int64_t width_ = 1;
  int64_t size_ = 0;
};

// NaN marks a bucket without a finite value. The vectors end at the run's own last bucket.
struct BucketedCurve {
  std::vector<double> mean, low, high;
};

BucketedCurve bucket_curve(const StepGrid& grid, const std::vector<int64_t>& steps, const std::vector<double>& values);

// A curve known only as means over stretches of steps, stretch i ending at last_steps[i], spread over the buckets so
// that it can be drawn and averaged beside whole ones: straight lines between the middles of the stretches. A stretch
// without a value stays without one.
std::vector<double> spread_over_grid(const StepGrid& grid, const std::vector<int64_t>& last_steps,
                                     const std::vector<double>& means);

// Keeps an evenly spread choice of a growing list whose length is not known beforehand: item number `index` is wanted
// when the stride divides it; when more than `limit` were taken, every other one is dropped and the stride doubles.
class Thinning {
 public:
  explicit Thinning(int64_t limit) : limit_(limit) {}

  bool wants(int64_t index) const { return index % stride_ == 0; }

  // Call after appending a wanted item to `kept`.
  template <class Item>
  void taken(std::vector<Item>& kept) {
    if (static_cast<int64_t>(kept.size()) <= limit_) return;
    size_t next = 0;
    for (size_t i = 0; i < kept.size(); i += 2) {
      if (next != i) kept[next] = std::move(kept[i]);
      ++next;
    }
    kept.resize(next);
    stride_ *= 2;
  }

 private:
  int64_t limit_;
  int64_t stride_ = 1;
};

}  // namespace siamese::report
