// The one loop of every family and scheme: for each site read, run the sublayer, write.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "siamese/models/attention_watch.h"
#include "siamese/models/intervention.h"
#include "siamese/models/recompute.h"
#include "siamese/nn/parameters.h"
#include "siamese/residual/topology.h"

namespace siamese::models {

struct SublayerOutput {
  residual::Branch branch;
  at::Tensor input = {};                // what the branch saw, where the family modulates what was read
  std::vector<at::Tensor> beside = {};  // what else came out, as auxiliary losses; the same number at every such site
  std::vector<at::Tensor> carry = {};   // for the next site
};

// What the family computes at a site from the branch input. `conditions`: what it needs beside that and its own
// parameters and has a gradient; handed in, because recomputation must know all it depends on. `carry`: what the site
// before left for this one (nn/value_carry.h), nothing at the first; a site hands on what later ones need.
using Sublayer =
    std::function<SublayerOutput(const residual::Site& site, const at::Tensor& input,
                                 const std::vector<at::Tensor>& conditions, const std::vector<at::Tensor>& carry)>;

struct StackOutput {
  at::Tensor hidden;               // the final hidden state
  std::vector<at::Tensor> beside;  // of all sites in order
};

struct StackOptions {
  int64_t recompute_every = 0;             // blocks per recomputed segment; 0 keeps all activations
  residual::Recorder* recorder = nullptr;  // sees the first pass, never a recomputation
  // A factor for each block on what its branches write, beside their own gates and where those act; empty: the stack's
  // own. The residual warm-up of training (train/residual_warmup.h).
  std::vector<double> branch_scales = {};
  // Called in backward, on its thread, once the gradients of all parameters of this block and of those after it are
  // complete: block by block towards the first, which is not told; where blocks are recomputed, segment by segment.
  std::function<void(int64_t block)> passed = {};
  Intervention* intervention = nullptr;  // only without recomputation
  AttentionWatch* watch = nullptr;       // called by the family's sublayers, not here; only without recomputation
};

class Stack {
 public:
  // Junctions are named by residual::junction_name, what the scheme has at the two ends `open` and `close`.
  // `branch_scales`: of a pass whose options say none; empty: every branch is written as it is. `hands_on`: whether
  // attention leaves a carry for later blocks, which they need also where an intervention leaves its branch out.
  Stack(const nn::Scope& scope, const std::string& scheme, const residual::Build& build,
        std::vector<double> branch_scales = {}, bool hands_on = false);

  const residual::Topology& topology() const { return *parts_->topology; }
  const std::vector<residual::Site>& sites() const { return parts_->sites; }
  const residual::Junction& junction(size_t site) const { return *parts_->junctions.at(site); }

  // embedding: [batch, tokens, width] -> the final hidden state, same shape. With recomputation the sublayer runs again
  // in backward: it must own what it uses. Its parameters are those below "blocks.<block>." in the stack's scope.
  StackOutput operator()(const at::Tensor& embedding, const Sublayer& sublayer, const StackOptions& options = {},
                         const std::vector<at::Tensor>& conditions = {}) const;

 private:
  // What goes from one site to the next.
  struct Passing {
    residual::Streams streams;
    std::vector<at::Tensor> carry;
  };

  // Shared with segments that backward will compute again, perhaps when the stack is gone.
  struct Parts {
    std::unique_ptr<residual::Topology> topology;
    std::vector<residual::Site> sites;
    std::vector<std::unique_ptr<residual::Junction>> junctions;
    bool hands_on = false;

    // Sites [first, last); what came out beside the branches is appended to `beside`.
    Passing run(Passing passing, size_t first, size_t last, const Sublayer& sublayer,
                const std::vector<at::Tensor>& conditions, residual::Recorder* recorder,
                std::vector<at::Tensor>& beside, Intervention* intervention = nullptr) const;
  };

  // The same, keeping only the inputs and computing the rest again in backward.
  Passing run_recomputed(const Passing& passing, size_t first, size_t last, const Sublayer& sublayer,
                         const std::vector<at::Tensor>& conditions, residual::Recorder* recorder,
                         std::vector<at::Tensor>& beside) const;
  // Sites from `first` on come next: tells options.passed when backward is back there.
  void watch(const residual::Streams& streams, size_t first, const StackOptions& options) const;
  // Whether reads shall round: a family that modulates what they return, a recorder and an intervention want floats.
  bool rounds_input(const residual::Streams& streams, const StackOptions& options) const;
  // Of sites [first, last), junctions and sublayers.
  SegmentParameters parameters_of(size_t first, size_t last) const;

  nn::Scope scope_;
  bool modulated_;
  std::vector<double> branch_scales_;
  std::shared_ptr<const Parts> parts_;
};

}  // namespace siamese::models
