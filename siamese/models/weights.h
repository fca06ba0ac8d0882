// Parameters <-> model.safetensors, under our own names (docs/checkpoints.md).
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "siamese/io/tensor_files.h"
#include "siamese/models/config.h"
#include "siamese/nn/parameters.h"

namespace siamese::models {

struct NamedTensor {
  std::string name;
  at::Tensor value;
  bool optional = false;  // a buffer: a file may lack it, and then it stays as it is
};

void save_tensors(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors,
                  const std::map<std::string, std::string>& metadata);

// Fills `tensors` in place, from a file, an index of shards or a folder with either; stored floating-point types are
// converted. DataError listing every missing, extra and misshapen tensor; then nothing is changed. DataError, too, for
// the first whose data is not what its checksum says; what came before it is then loaded.
void load_tensors(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors);
void load_tensors(const io::TensorFiles& files, const std::vector<NamedTensor>& tensors);

// What a file of weights holds: the parameters, then the buffers.
std::vector<NamedTensor> named_values(const nn::Parameters& parameters);

// The same of a model that need not fit into memory (values on the meta device). `config` must be resolved.
std::vector<NamedTensor> tensor_list(const ModelConfig& config);

at::ScalarType tensor_type(io::DType stored);

// A stored tensor without a copy (unaligned ones are copied): valid as long as `view`'s memory. Its data is about to be
// used, so that it is verified.
at::Tensor as_tensor(const io::TensorView& view);
// The other way: points into `tensor`, which must be contiguous and on the CPU.
io::TensorView as_view(const std::string& name, const at::Tensor& tensor);

}  // namespace siamese::models
