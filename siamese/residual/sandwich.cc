#include "siamese/residual/sandwich.h"

#include "siamese/residual/one_stream.h"
#include "siamese/residual/peri.h"

namespace siamese::residual {
namespace {

class Sandwich : public OneStream {
 public:
  using OneStream::OneStream;
  std::unique_ptr<Junction> junction(const nn::Scope& scope, const Site& site) const override {
    return peri_junction(scope, site, build());
  }
};

}  // namespace

Scheme sandwich_scheme() {
  return define_scheme<NoOptions>({.name = "sandwich",
                                   .equation = "h <- h + LN(G(LN(h)));  out = LN(h)",
                                   .paper = "Sandwich-LN (CogView), arXiv 2105.13290",
                                   .full = R"(h_0 = E
h  <- h + LN_out,i( G_i( LN_in,i(h) ) )
output = LN_final(h))"},
                                  [](const NoOptions&, const nn::Scope& scope, const Build& build) {
                                    return std::make_unique<Sandwich>(scope, build);
                                  });
}

}  // namespace siamese::residual
