#include "siamese/data/spread.h"

#include <algorithm>

#include <fmt/format.h>

#include "siamese/base/check.h"

namespace siamese::data {
namespace {

template <class T>
void append(const std::vector<T>& from, std::vector<T>& to) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

SpreadBatches::SpreadBatches(const Batches& source, int64_t count)
    : source_(source), count_(source.samples() > 0 ? std::min(count, source.samples()) : count) {
  SIAMESE_INVARIANT(count >= 1);
}

Batch SpreadBatches::batch(uint64_t first, int64_t rows) const {
  SIAMESE_INVARIANT(rows > 0 && first + static_cast<uint64_t>(rows) <= static_cast<uint64_t>(count_));
  if (source_.samples() == 0 || source_.samples() == count_) return source_.batch(first, rows);
  const auto whole = static_cast<uint64_t>(source_.samples());
  Batch batch;
  for (uint64_t at = first; at < first + static_cast<uint64_t>(rows); ++at) {
    // at < count <= whole: the product of two numbers of samples is far from the end of 64 bits.
    const Batch one = source_.batch(at * whole / static_cast<uint64_t>(count_), 1);
    batch.shape = one.shape;
    append(one.tokens, batch.tokens);
    append(one.weights, batch.weights);
    append(one.borders, batch.borders);
    append(one.images, batch.images);
    append(one.labels, batch.labels);
    append(one.targets, batch.targets);
  }
  batch.rows = rows;
  batch.first_position = first;
  return batch;
}

std::string SpreadBatches::describe() const {
  if (source_.samples() == 0 || source_.samples() == count_) return source_.describe();
  return fmt::format("{} samples evenly spread over {}", count_, source_.describe());
}

}  // namespace siamese::data
