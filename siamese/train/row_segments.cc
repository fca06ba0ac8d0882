#include "siamese/train/row_segments.h"

#include <ATen/core/Tensor.h>

namespace siamese::train {
namespace row_segments_detail {

constexpr int64_t kLeast = 512;  // elements for each rank

// Neighbours of one block are one segment.
std::vector<RowSegment> merged(const std::vector<RowSegment>& segments) {
  std::vector<RowSegment> result;
  for (const RowSegment& segment : segments) {
    if (segment.begin == segment.end) continue;
    if (!result.empty() && result.back().block == segment.block) {
      result.back().end = segment.end;
    } else {
      result.push_back(segment);
    }
  }
  return result;
}

}  // namespace row_segments_detail

std::vector<RowSegment> row_segments(const nn::GradientBuffer& gradients, const std::vector<int64_t>& blocks,
                                     int ranks) {
  using namespace row_segments_detail;
  const std::vector<int64_t>& begins = gradients.begins();
  std::vector<RowSegment> segments;
  for (size_t i = 0; i < begins.size(); ++i) {
    const int64_t end = i + 1 < begins.size() ? begins[i + 1] : gradients.whole().numel();
    segments.push_back({begins[i], end, blocks[i]});
  }
  segments = merged(segments);
  for (RowSegment& segment : segments) {
    if (segment.end - segment.begin < kLeast * ranks) segment.block = RowSegment::kNoBlock;
  }
  return merged(segments);
}

}  // namespace siamese::train
