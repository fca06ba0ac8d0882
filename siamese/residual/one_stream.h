// What the schemes with a single hidden state share: one stream h, opened as the embedding and closed with a norm.
#pragma once

#include "siamese/residual/topology.h"

namespace siamese::residual {

// Norms at the two ends; the one at the close is left out in modulated families.
struct EndNorms {
  bool embedding = false;
  bool final = true;
};

class OneStream : public Topology {
 public:
  OneStream(const nn::Scope& scope, const Build& build, const EndNorms& norms = {});

  Streams open(const at::Tensor& embedding) const override { return {{{"h", embedding_norm_(embedding)}}, {}, {}}; }
  at::Tensor close(const Streams& streams) const override;
  // Whatever else a scheme carries for a while (span, denseformer), it closes with h, the first.
  at::Tensor lens(const Streams& streams, std::optional<size_t> only) const override;

 protected:
  const Build& build() const { return build_; }

 private:
  Build build_;
  nn::Norm embedding_norm_;
  nn::Norm final_norm_;
};

}  // namespace siamese::residual
