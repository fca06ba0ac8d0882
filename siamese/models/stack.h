// The one loop of every family and scheme: for each site read, run the sublayer, write.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "siamese/nn/parameters.h"
#include "siamese/residual/topology.h"

namespace siamese::models {

// What the family computes at a site from the branch input.
using Sublayer = std::function<residual::Branch(const residual::Site& site, const at::Tensor& input)>;

struct StackOptions {
  int64_t recompute_every = 0;             // blocks per recomputed segment; 0 keeps all activations
  residual::Recorder* recorder = nullptr;  // sees the first pass, never a recomputation
};

// Where the parameters of a site's junction lie: "blocks.3.ffn_junction".
std::string junction_name(const residual::Site& site);

class Stack {
 public:
  // Junctions are named by junction_name, what the scheme has at the two ends `open` and `close`.
  Stack(const nn::Scope& scope, const std::string& scheme, const residual::Build& build);

  const residual::Topology& topology() const { return *topology_; }
  const std::vector<residual::Site>& sites() const { return sites_; }

  // embedding: [batch, tokens, width] -> the final hidden state, same shape.
  at::Tensor operator()(const at::Tensor& embedding, const Sublayer& sublayer, const StackOptions& options = {}) const;

 private:
  residual::Streams run(residual::Streams streams, size_t first, size_t last, const Sublayer& sublayer,
                        residual::Recorder* recorder) const;

  std::unique_ptr<residual::Topology> topology_;
  std::vector<residual::Site> sites_;
  std::vector<std::unique_ptr<residual::Junction>> junctions_;
};

}  // namespace siamese::models
