// Which tensors of a layout make up each tensor of a model of ours, with all shapes, and both directions of the map.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "siamese/formats/layout.h"
#include "siamese/models/weights.h"

namespace siamese::formats {

struct TensorPart {
  std::string name;
  std::vector<int64_t> shape;
};

struct Mapping {
  std::string ours;
  std::vector<int64_t> shape;
  bool optional = false;  // a buffer: a file may lack it
  Form form = Form::same;
  int64_t head_dim = 0;           // of qkv_pairs
  std::vector<TensorPart> parts;  // theirs
};

// For each tensor of `ours`, in order. UsageError listing those that the layout has no name for.
std::vector<Mapping> mappings(Layout layout, const models::ModelConfig& config,
                              const std::vector<models::NamedTensor>& ours);
// The same for all tensors of a model; `config` must be resolved.
std::vector<Mapping> mappings(Layout layout, const models::ModelConfig& config);

// Theirs -> ours. A view of `parts` where the form allows it, a copy when parts are joined or transposed.
at::Tensor assemble(const Mapping& mapping, const std::vector<at::Tensor>& parts);
// Ours -> theirs, contiguous. A view but for transposed ones.
at::Tensor part_of(const Mapping& mapping, size_t part, const at::Tensor& ours);

}  // namespace siamese::formats
