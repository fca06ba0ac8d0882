#include "siamese/residual/lns.h"

#include <cmath>

#include "siamese/residual/one_stream.h"
#include "siamese/residual/pre.h"

namespace siamese::residual {
namespace {

class Lns : public OneStream {
 public:
  using OneStream::OneStream;
  std::unique_ptr<Junction> junction(const nn::Scope& scope, const Site& site) const override {
    return pre_junction(scope, site, build(), 1 / std::sqrt(static_cast<double>(site.block + 1)));
  }
  BranchInit branch_init(const Site&) const override { return {.depth_factor = false}; }
};

}  // namespace

Scheme lns_scheme() {
  return define_scheme<NoOptions>(
      {.name = "lns",
       .equation = "h <- h + G(LN(h) / sqrt(l+1));  out = LN(h)",
       .paper = "LayerNorm Scaling, arXiv 2502.05795",
       .full = R"(h_0 = E
h  <- h + G_i( LN_i(h) / sqrt(l+1) )          l = block, from 0
output = LN_final(h)
init: output projections without the rule's factor of depth)"},
      [](const NoOptions&, const nn::Scope& scope, const Build& build) { return std::make_unique<Lns>(scope, build); });
}

}  // namespace siamese::residual
