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

struct SublayerOutput {
  residual::Branch branch;
  at::Tensor input = {};                // what the branch saw, where the family modulates what was read
  std::vector<at::Tensor> beside = {};  // what else came out, as auxiliary losses; the same number at every such site
};

// What the family computes at a site from the branch input. `conditions`: what it needs beside that and its own
// parameters and has a gradient; handed in, because recomputation must know all it depends on.
using Sublayer = std::function<SublayerOutput(const residual::Site& site, const at::Tensor& input,
                                              const std::vector<at::Tensor>& conditions)>;

struct StackOutput {
  at::Tensor hidden;               // the final hidden state
  std::vector<at::Tensor> beside;  // of all sites in order
};

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
  StackOutput operator()(const at::Tensor& embedding, const Sublayer& sublayer, const StackOptions& options = {},
                         const std::vector<at::Tensor>& conditions = {}) const;

 private:
  // Sites [first, last); what came out beside the branches is appended to `beside`.
  residual::Streams run(residual::Streams streams, size_t first, size_t last, const Sublayer& sublayer,
                        const std::vector<at::Tensor>& conditions, residual::Recorder* recorder,
                        std::vector<at::Tensor>& beside) const;
  // The same, keeping only the inputs and computing the rest again in backward.
  residual::Streams run_recomputed(const residual::Streams& streams, size_t first, size_t last,
                                   const Sublayer& sublayer, const std::vector<at::Tensor>& conditions,
                                   residual::Recorder* recorder, std::vector<at::Tensor>& beside) const;

  std::unique_ptr<residual::Topology> topology_;
  std::vector<residual::Site> sites_;
  std::vector<std::unique_ptr<residual::Junction>> junctions_;
};

}  // namespace siamese::models
