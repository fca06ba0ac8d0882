// The curve of a run that goes on, in bounded memory: buckets of `width` steps, which is doubled whenever there would
// be more than kMostBuckets. Bucket i has the steps i width + 1 ... (i + 1) width. Sums and extremes join exactly, so
// the result does not depend on when the width was doubled, and no spike is lost.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace siamese::report {

// Finite values of some steps.
struct BucketOfSteps {
  double sum = 0;
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  int64_t count = 0;

  void add(double value);
  void join(const BucketOfSteps& other);
  double mean() const;  // NaN without a value
};

class LiveCurve {
 public:
  static constexpr size_t kMostBuckets = 512;
  enum Quantity { loss, grad_norm, quantities };
  using Bucket = std::array<BucketOfSteps, quantities>;

  // Steps ascend; one that does not (lines that a resumed run wrote again) takes back what lies in its bucket and
  // after.
  void add(int64_t step, double loss_value, double grad_norm_value);
  void clear();

  const std::vector<Bucket>& buckets() const { return buckets_; }
  int64_t width() const { return width_; }
  int64_t last_step() const { return last_step_; }
  // Changes whenever buckets other than the last one may have; then a reader has to take all of them again.
  uint64_t epoch() const { return epoch_; }

 private:
  size_t place(int64_t step) const { return static_cast<size_t>((step - 1) / width_); }
  void double_width();

  std::vector<Bucket> buckets_;
  int64_t width_ = 1;
  int64_t last_step_ = 0;
  uint64_t epoch_ = 0;
};

}  // namespace siamese::report
