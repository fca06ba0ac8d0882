// Batches of labelled float samples: order, repeats, limit, mixing. What a sample is, a LabelledSamples says.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "siamese/data/batches.h"

namespace siamese::data {

class LabelledSamples {
 public:
  virtual ~LabelledSamples() = default;
  // 0 = endless: every index is a sample.
  virtual int64_t size() const = 0;
  // Writes sample `index` and returns its label, below the model's classes (DataError naming the file otherwise). What
  // is random about it follows from `position`, its place in the run. Safe to call from several threads.
  virtual int64_t sample(uint64_t index, uint64_t position, std::span<float> out) const = 0;
  // One line for the log.
  virtual std::string describe() const = 0;
};

// Training: an endless set by position, any other as a new permutation each epoch keyed by (seed, epoch), each sample
// data.augment.repeats times in a row; of a finite set the first data.limit. Test: as written, from the start again
// each epoch.
std::unique_ptr<Batches> labelled_batches(std::unique_ptr<LabelledSamples> samples, const DataConfig& config,
                                          Split split, const SampleShape& shape, uint64_t seed);

}  // namespace siamese::data
