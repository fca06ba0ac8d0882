// The contract of a residual scheme. Four verbs, no more:
//   open   embedding -> streams                 (topology)
//   read   streams -> streams, branch input     (junction)
//   write  streams, branch -> streams           (junction)
//   close  streams -> final hidden state        (topology)
// One loop (models/stack) serves every scheme and family: for each site read, run the sublayer, write.
// How many streams there are, and their names, may differ from place to place (span, attn_res), but only by the place:
// a scheme and a depth decide it, never a tensor. Whoever carries streams asks them (streams.h, StreamsLayout).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "siamese/nn/attention.h"
#include "siamese/nn/norm.h"
#include "siamese/residual/site.h"
#include "siamese/residual/streams.h"

namespace siamese::residual {

// Sees inside a forward pass; the same in plain and fused runs.
class Recorder {
 public:
  virtual ~Recorder() = default;
  // A stream at a read, the pending branch added: before its own norm at this site, and after (undefined: no norm
  // here).
  virtual void stream(const Site& site, const std::string& name, const at::Tensor& before, const at::Tensor& after) = 0;
  // What the sublayer saw (after modulation) and gave (before the gate).
  virtual void branch(const Site& site, const at::Tensor& input, const at::Tensor& output) = 0;
};

struct ReadResult {
  Streams streams;
  at::Tensor branch_input;
};

// The weights that a read, or the close, computes for the streams, one for each token or the same for all: for who
// looks inside.
struct StreamWeights {
  at::Tensor input;  // [..., n]: of each stream in what is made of them; undefined: the scheme has no such weights
  at::Tensor mix;    // [..., n, n]: what stream j keeps of stream i until the write; undefined: each keeps itself
};

class Junction {
 public:
  explicit Junction(const Site& site) : site_(site) {}
  virtual ~Junction() = default;
  Junction(const Junction&) = delete;
  Junction& operator=(const Junction&) = delete;

  virtual ReadResult read(const Streams& streams, Recorder* recorder) const = 0;
  virtual Streams write(const Streams& streams, const Branch& branch) const = 0;

  // Of a read of these streams.
  virtual StreamWeights weights(const Streams&) const { return {}; }

  const Site& site() const { return site_; }

 protected:
  void record(Recorder* recorder, const std::string& name, const at::Tensor& before, const at::Tensor& after) const {
    if (recorder != nullptr) recorder->stream(site_, name, before, after);
  }

 private:
  Site site_;
};

// What a scheme may know of the model it is built into.
struct Build {
  int64_t width = 0;
  int64_t blocks = 0;
  nn::NormSpec norm;
  // The family modulates what read returns and brings its own final norm (DiT): then a norm whose output is the branch
  // input has no gain or shift, and close leaves out a norm that acts on the whole result.
  bool modulated = false;
  // A token sees none of those after it: a scheme that looks across the tokens of a sample is refused.
  bool causal = false;

  nn::NormSpec branch_input_norm() const {
    nn::NormSpec spec = norm;
    spec.affine = spec.affine && !modulated;
    return spec;
  }
};

// What a scheme asks of the weights of the branch at a site, beside the init rule.
struct BranchInit {
  double value = 1;          // factor on the value projection
  double ffn_input = 1;      // factor on the FFN's input projections
  double output = 1;         // factor on the projection back to the stream (attention and FFN)
  bool depth_factor = true;  // whether the rule's own 1 / sqrt(2L) applies to output projections
};

class Topology {
 public:
  virtual ~Topology() = default;

  virtual Streams open(const at::Tensor& embedding) const = 0;
  virtual std::unique_ptr<Junction> junction(const nn::Scope& scope, const Site& site) const = 0;
  virtual at::Tensor close(const Streams& streams) const = 0;

  // A lens: what `close` gives if no branch comes after these streams, at whatever place they are. With `only`, of that
  // stream's term alone: the terms of the others are left out, the final norm stays; undefined where `close` has no
  // term of it. Here: as `close`, the others zeros; for a scheme whose streams at every place are those of its end, and
  // which has no norm with a bias on one of them.
  virtual at::Tensor lens(const Streams& streams, std::optional<size_t> only = std::nullopt) const {
    return close(only ? alone(flush(streams), *only) : streams);
  }

  // Of the close of these streams.
  virtual StreamWeights weights(const Streams&) const { return {}; }

  // Whether a token's streams depend, outside of the branches, on other tokens of its sample (its first dimension).
  virtual bool mixes_tokens() const { return false; }

  // What does not hold, where the norms of the build do not take out the size of what they are given (model.norm dyt,
  // derf), although the scheme is known for it: for a note to the user. Empty: nothing.
  virtual std::string_view lost_without_true_norm() const { return {}; }

  // Hints, where a scheme reaches inside a branch.
  virtual nn::AttentionNorm attention_norm(const Site&) const { return nn::AttentionNorm::none; }
  virtual BranchInit branch_init(const Site&) const { return {}; }
};

}  // namespace siamese::residual
