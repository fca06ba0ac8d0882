// Rows of samples, the same number of each, and sums over the rows of a sample whose order does not depend on the
// thread count: rows are cut where a part of RowPartials ends and where a sample ends, each piece adds into a buffer of
// its own, and the pieces of a sample are added in order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <ATen/ATen.h>

#include "siamese/kernels/partition.h"

namespace siamese::ops {

class SampleRows {
 public:
  SampleRows(int64_t rows, int64_t samples)
      : rows_(rows), samples_(samples), of_each_(std::max<int64_t>(1, rows / std::max<int64_t>(1, samples))) {}

  int64_t rows() const { return rows_; }
  int64_t samples() const { return samples_; }

  // body(begin, end, sample) for the rows [begin, end), cut where a sample ends.
  template <class Body>
  void for_each(int64_t begin, int64_t end, const Body& body) const {
    while (begin < end) {
      const int64_t sample = begin / of_each_;
      const int64_t stop = std::min(end, (sample + 1) * of_each_);
      body(begin, stop, sample);
      begin = stop;
    }
  }

 private:
  int64_t rows_;
  int64_t samples_;
  int64_t of_each_;
};

class SamplePartials {
 public:
  // Not wanted: the same pieces, without buffers.
  SamplePartials(const SampleRows& rows, int64_t cols, bool wanted) : rows_(rows) {
    if (!wanted) return;
    const kernels::Partition partition = kernels::partition_rows(rows.rows(), cols);
    for (int64_t part = 0; part < partition.parts; ++part) {
      rows.for_each(partition.begin(part), partition.end(part), [&](int64_t begin, int64_t, int64_t sample) {
        begins_.push_back(begin);
        samples_.push_back(sample);
      });
    }
    sums_ = at::zeros({static_cast<int64_t>(begins_.size()), cols}, at::kFloat);
  }

  // body(begin, end, sample, the piece's buffer of `cols` floats or null) for the pieces of a part of RowPartials.
  template <class Body>
  void for_each(int64_t part_begin, int64_t part_end, const Body& body) const {
    float* sums = nullptr;
    if (sums_.defined()) {
      const auto first = std::lower_bound(begins_.begin(), begins_.end(), part_begin) - begins_.begin();
      sums = sums_.mutable_data_ptr<float>() + first * sums_.size(1);
    }
    rows_.for_each(part_begin, part_end, [&](int64_t begin, int64_t end, int64_t sample) {
      body(begin, end, sample, sums);
      if (sums != nullptr) sums += sums_.size(1);
    });
  }

  // [samples, cols]
  at::Tensor total() const {
    const int64_t cols = sums_.size(1);
    at::Tensor result = at::zeros({rows_.samples(), cols}, at::kFloat);
    const float* from = sums_.const_data_ptr<float>();
    for (const int64_t sample : samples_) {
      float* const to = result.mutable_data_ptr<float>() + sample * cols;
      for (int64_t i = 0; i < cols; ++i) to[i] += from[i];
      from += cols;
    }
    return result;
  }

 private:
  SampleRows rows_;
  std::vector<int64_t> begins_;   // of the pieces, in order
  std::vector<int64_t> samples_;  // and whose rows they are
  at::Tensor sums_;
};

}  // namespace siamese::ops
