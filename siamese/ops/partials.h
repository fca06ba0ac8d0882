// Sums over rows whose order does not depend on the thread count: the rows are cut into a fixed number of parts
// (a function of their number only), each part adds into its own buffer, and the buffers are added in order.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "siamese/kernels/partition.h"

namespace siamese::ops {

// Rows that are worth waking a thread for.
inline int64_t row_grain(int64_t cols) { return std::max<int64_t>(1, 16384 / std::max<int64_t>(1, cols)); }

class RowPartials {
 public:
  static constexpr int kMaxSums = 9;

  // `sums` buffers of `cols` floats for each part.
  RowPartials(int64_t rows, int64_t cols, int sums)
      : partition_(kernels::partition_rows(rows, cols)),
        buffers_(at::zeros({std::max(sums, 1), partition_.parts, cols}, at::kFloat)),
        sums_(sums) {}

  // body(row_begin, row_end, pointers to this part's buffers; nullptr beyond `sums`)
  template <class Body>
  void for_each(const Body& body) {
    float* const base = buffers_.mutable_data_ptr<float>();
    const int64_t part_stride = buffers_.size(2);
    const int64_t sum_stride = buffers_.size(1) * part_stride;
    at::parallel_for(0, partition_.parts, 1, [&](int64_t first, int64_t last) {
      for (int64_t part = first; part < last; ++part) {
        std::array<float*, kMaxSums> pointers{};
        for (int sum = 0; sum < sums_; ++sum) {
          pointers[static_cast<size_t>(sum)] = base + sum * sum_stride + part * part_stride;
        }
        body(partition_.begin(part), partition_.end(part), pointers.data());
      }
    });
  }

  // [cols]: the parts of one sum added in order.
  at::Tensor total(int sum) const {
    at::Tensor result = at::zeros({buffers_.size(2)}, at::kFloat);
    add_total(sum, result);
    return result;
  }

  // The same, added to `to`.
  void add_total(int sum, const at::Tensor& to) const {
    const int64_t parts = buffers_.size(1);
    const int64_t cols = buffers_.size(2);
    float* const out = to.mutable_data_ptr<float>();
    const float* const in = buffers_.const_data_ptr<float>() + sum * parts * cols;
    constexpr int64_t kBlock = 64;  // columns whose sums stay in registers
    for (int64_t first = 0; first < cols; first += kBlock) {
      const int64_t count = std::min(kBlock, cols - first);
      std::array<float, kBlock> total{};
      for (int64_t part = 0; part < parts; ++part) {
        for (int64_t i = 0; i < count; ++i) total[static_cast<size_t>(i)] += in[part * cols + first + i];
      }
      for (int64_t i = 0; i < count; ++i) out[first + i] += total[static_cast<size_t>(i)];
    }
  }

 private:
  kernels::Partition partition_;
  at::Tensor buffers_;
  int sums_;
};

}  // namespace siamese::ops
