// How work is cut into parts: by its size alone, never by the number of threads, so that sums over parts, added in the
// order of the parts, have the same bits at any thread count.
//   part i of parts = [begin(i), end(i)), in order, without gaps, lengths that differ by at most one.
#pragma once

#include <algorithm>
#include <cstdint>

namespace siamese::kernels {

struct Partition {
  int64_t size = 0;
  int64_t parts = 0;  // 0 only when size is 0

  int64_t begin(int64_t part) const { return part * (size / parts) + std::min(part, size % parts); }
  int64_t end(int64_t part) const { return begin(part + 1); }
};

inline constexpr int64_t kMaxParts = 64;
inline constexpr int64_t kPartElements = 8192;  // 32 KiB of floats: less is not worth a thread's attention

// A flat array of `size` elements.
inline Partition partition_elements(int64_t size) {
  return {size, std::min(kMaxParts, (size + kPartElements - 1) / kPartElements)};
}

// The rows of a [rows, cols] array: whole rows, at most one part per row.
inline Partition partition_rows(int64_t rows, int64_t cols) {
  return {rows, std::min(rows, std::max<int64_t>(1, partition_elements(rows * cols).parts))};
}

}  // namespace siamese::kernels
