// analysis.safetensors: the larger numbers that `siamese analyze` measured (docs/analyze.md), as whoever draws them
// reads them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace siamese::runs {

struct AnalysisArray {
  std::string name;  // "similarity/cka"
  std::vector<int64_t> shape;
  std::vector<float> values;  // row-major
};

// Of a folder that `siamese analyze` wrote; none where the file is missing: analysis.json stands for itself. DataError
// when it is damaged or holds anything but float32.
std::vector<AnalysisArray> read_analysis_arrays(const std::filesystem::path& folder);

// nullptr when there is none, or none of so many dimensions.
const AnalysisArray* find_array(const std::vector<AnalysisArray>& arrays, std::string_view name, size_t dimensions);

}  // namespace siamese::runs
