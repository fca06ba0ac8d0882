// A fixed number of samples, spread evenly over a set: sample i of n is sample floor(i N / n) of N. What is measured on
// them speaks for the whole set, not for how its files begin, and does not depend on how a run cuts its batches.
// All of a set that is not larger; of an endless one, which has no end to spread to, the first n.
#pragma once

#include "siamese/data/batches.h"

namespace siamese::data {

class SpreadBatches : public Batches {
 public:
  // `source` must outlive it; count >= 1.
  SpreadBatches(const Batches& source, int64_t count);

  int64_t samples() const override { return count_; }
  // Samples [first, first + rows), all below samples().
  Batch batch(uint64_t first, int64_t rows) const override;
  std::string describe() const override;

 private:
  const Batches& source_;
  int64_t count_;
};

}  // namespace siamese::data
