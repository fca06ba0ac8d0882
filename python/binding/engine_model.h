// A model of the engine on tensors that Python owns: it keeps shapes, and every call brings the parameters and buffers.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "siamese/models/model.h"
#include "siamese/train/config.h"

namespace siamese::python {

using Tensors = std::vector<at::Tensor>;
using TensorsByName = std::map<std::string, at::Tensor>;
using MaybeTensor = std::optional<at::Tensor>;

// What generation asks for (eval/generate.h), with the token that ends a sequence.
struct Asked {
  int64_t max_tokens = 64;
  double temperature = 0;
  int64_t top_k = 0;
  double top_p = 1;
  uint64_t seed = 0;
  std::optional<int64_t> stop;
};

class EngineModel {
 public:
  // `config`: resolved. `least_context`: of a model with rotary positions, which may see more than it was trained with.
  // A model whose scheme is written in Python is made under a PythonSchemeGuard. `branch_scales`: of every pass
  // (models::StackOptions), for a checkpoint in the middle of a residual warm-up.
  EngineModel(const std::string& config, int64_t least_context, const std::vector<double>& branch_scales = {});

  at::Tensor forward(const Tensors& parameters, const TensorsByName& buffers, const at::Tensor& x,
                     const MaybeTensor& timesteps, const MaybeTensor& labels) const;
  at::Tensor hidden(const Tensors& parameters, const TensorsByName& buffers, const at::Tensor& x) const;
  models::Losses losses(const Tensors& parameters, const TensorsByName& buffers, const models::Inputs& inputs,
                        models::LossOptions options) const;
  std::vector<std::vector<int64_t>> generate(const Tensors& parameters, const TensorsByName& buffers,
                                             const std::vector<std::vector<int64_t>>& prompts,
                                             const Asked& asked) const;

 private:
  template <class Run>
  auto with(const Tensors& parameters, const TensorsByName& buffers, Run run) const;
  double targets_of(const models::Inputs& inputs) const;

  models::ModelConfig config_;
  std::unique_ptr<models::Model> model_;  // on the meta device
  mutable std::mutex buffers_mutex_;
};

}  // namespace siamese::python
