// A scheme as pure functions of tensors, for a caller who owns every tensor: a module of PyTorch, a compiler that
// traces what is computed. Parameters and streams are flat lists; what a list holds follows from the scheme, the site
// and the verb alone, never from the tensors.
//   open   ends, embedding             -> streams
//   read   site, streams               -> streams, branch input
//   write  site, streams, branch, gate -> streams
//   close  ends, streams               -> final hidden state
// `ends` and `site` stand for the parameters of that place, in the order of its list. Any type and device.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "siamese/nn/parameters.h"
#include "siamese/residual/topology.h"

namespace siamese::residual {

struct ParameterSpec {
  std::string name;  // within its place, dotted: "norm.weight"
  nn::ParameterKind kind;
  std::vector<int64_t> shape;
};

class FunctionalScheme {
 public:
  // UsageError for a scheme text or a shape that cannot be.
  FunctionalScheme(const std::string& scheme, const Build& build);

  const std::string& text() const { return text_; }             // canonical
  const Topology& topology() const { return *ends_.topology; }  // for its hints; it holds no values
  int64_t sites() const { return static_cast<int64_t>(sites_.size()); }

  // Of the two ends together ("open.norm.weight", "close.norm.weight"), and of one site.
  const std::vector<ParameterSpec>& end_parameters() const { return ends_.specs; }
  const std::vector<ParameterSpec>& site_parameters(int64_t site) const;

  // Initial values of a place, each a leaf that requires its gradient. A random one is a function of the seed and of
  // `prefix` + "." + name: under the engine's own prefixes ("", junction_name(site)) the engine's own values.
  std::vector<at::Tensor> initial_ends(uint64_t seed, const at::TensorOptions& options = {},
                                       const std::string& prefix = "") const;
  std::vector<at::Tensor> initial_site(int64_t site, uint64_t seed, const at::TensorOptions& options,
                                       const std::string& prefix) const;

  // What a list of streams holds: what the read of a site takes (site = sites(): what close takes) and what its write
  // takes. A gate that was given to the last write stands at the end of the list, if the branch is pending there.
  const StreamsLayout& before_read(int64_t site) const;
  const StreamsLayout& after_read(int64_t site) const;

  struct Read {
    std::vector<at::Tensor> streams;
    at::Tensor branch_input;
  };

  std::vector<at::Tensor> open(at::TensorList ends, const at::Tensor& embedding) const;
  Read read(int64_t site, at::TensorList parameters, at::TensorList streams) const;
  // `gate` may be undefined: 1.
  std::vector<at::Tensor> write(int64_t site, at::TensorList parameters, at::TensorList streams,
                                const at::Tensor& branch, const at::Tensor& gate = {}) const;
  at::Tensor close(at::TensorList ends, at::TensorList streams) const;

 private:
  struct Ends {
    nn::Parameters parameters;  // shapes only
    std::unique_ptr<Topology> topology;
    std::vector<ParameterSpec> specs;
  };
  struct Place {
    nn::Parameters parameters;  // shapes only
    std::unique_ptr<Junction> junction;
    std::vector<ParameterSpec> specs;
  };

  const Place& place(int64_t site) const;
  // Runs the verbs once on a token of zeros to see what they leave in the lists.
  void find_layouts();

  std::string text_;
  Build build_;
  Ends ends_;
  std::vector<Place> sites_;
  std::vector<StreamsLayout> before_read_;  // of every site, then of close
  std::vector<StreamsLayout> after_read_;
};

}  // namespace siamese::residual
