#include "siamese/runs/analysis_arrays.h"

#include <cstring>

#include "siamese/base/check.h"
#include "siamese/base/path_kind.h"
#include "siamese/io/safetensors.h"
#include "siamese/runs/analysis_record.h"

namespace siamese::runs {

std::vector<AnalysisArray> read_analysis_arrays(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / kAnalysisTensors;
  if (!is_there(file)) return {};
  const auto tensors = io::SafetensorsFile::open(file);
  std::vector<AnalysisArray> arrays;
  for (const io::TensorView& tensor : tensors.tensors()) {
    if (tensor.dtype != io::DType::f32) {
      throw DataError(file.string() + ": " + tensor.name + ": expected F32, got another type");
    }
    AnalysisArray& array = arrays.emplace_back();
    array.name = tensor.name;
    array.shape = tensor.shape;
    array.values.resize(tensor.bytes / sizeof(float));
    io::read_tensor(tensor, [&](size_t offset, std::span<const std::byte> block) {
      std::memcpy(reinterpret_cast<std::byte*>(array.values.data()) + offset, block.data(), block.size());
    });
  }
  return arrays;
}

const AnalysisArray* find_array(const std::vector<AnalysisArray>& arrays, std::string_view name, size_t dimensions) {
  for (const AnalysisArray& array : arrays) {
    if (array.name == name && array.shape.size() == dimensions) return &array;
  }
  return nullptr;
}

}  // namespace siamese::runs
