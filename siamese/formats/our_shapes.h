// Stored tensors as the shapes of ours, as far as they are there: what inference looks at.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "siamese/formats/stored.h"

namespace siamese::formats {

struct OurShapes {
  std::map<std::string, std::vector<int64_t>, std::less<>> shapes;  // by our names
  int64_t blocks = 0;                                               // one more than the largest number
  int64_t patch = 0;                                                // 0: no filter tells
  int64_t channels = 0;

  bool has(std::string_view name) const { return shapes.contains(name); }
  int64_t size(std::string_view name, size_t dimension) const;  // 0 when there is none
};

// Of the first group. A tensor whose rank is not the layout's is passed over: the check of shapes will name it.
OurShapes our_shapes(const StoredTensors& stored);

}  // namespace siamese::formats
