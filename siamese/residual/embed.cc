#include "siamese/residual/embed.h"

#include "siamese/residual/one_stream.h"
#include "siamese/residual/pre.h"

namespace siamese::residual {
namespace {

class Embed : public OneStream {
 public:
  Embed(const nn::Scope& scope, const Build& build) : OneStream(scope, build, {.embedding = true}) {}
  std::unique_ptr<Junction> junction(const nn::Scope& scope, const Site& site) const override {
    return pre_junction(scope, site, build());
  }
};

}  // namespace

Scheme embed_scheme() {
  return define_scheme<NoOptions>({.name = "embed",
                                   .equation = "h_0 = LN(E);  h <- h + G(LN(h));  out = LN(h)",
                                   .paper = "Pre-Norm with EmbedNorm, as in OLMo (arXiv 2402.00838)",
                                   .full = R"(h_0 = LN_emb(E)
h  <- h + G_i( LN_i(h) )
output = LN_final(h))"},
                                  [](const NoOptions&, const nn::Scope& scope, const Build& build) {
                                    return std::make_unique<Embed>(scope, build);
                                  });
}

}  // namespace siamese::residual
