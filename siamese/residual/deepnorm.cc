#include "siamese/residual/deepnorm.h"

#include <cmath>

#include "siamese/residual/one_stream.h"
#include "siamese/residual/post.h"

namespace siamese::residual {
namespace {

class DeepNorm : public OneStream {
 public:
  DeepNorm(const nn::Scope& scope, const Build& build) : OneStream(scope, build, {.final = false}) {}
  std::string_view lost_without_true_norm() const override { return "nothing divides its factor (2L)^(1/4) out again"; }
  std::unique_ptr<Junction> junction(const nn::Scope& scope, const Site& site) const override {
    return post_junction(scope, site, build(), std::pow(2.0 * static_cast<double>(build().blocks), 0.25));
  }
  BranchInit branch_init(const Site&) const override {
    const double beta = std::pow(8.0 * static_cast<double>(build().blocks), -0.25);
    return {.value = beta, .ffn_input = beta, .output = beta, .depth_factor = false};
  }
};

}  // namespace

Scheme deepnorm_scheme() {
  return define_scheme<NoOptions>({.name = "deepnorm",
                                   .equation = "x <- LN(alpha x + G(x)), alpha = (2L)^(1/4);  out = x",
                                   .paper = "DeepNorm, arXiv 2203.00555",
                                   .full = R"(x_0 = E
x  <- LN_i( alpha x + G_i(x) )                alpha = (2L)^(1/4), L = blocks
output = x
init: value, attention output and FFN matrices times beta = (8L)^(-1/4), query and key unchanged;
      without the rule's factor of depth)"},
                                  [](const NoOptions&, const nn::Scope& scope, const Build& build) {
                                    return std::make_unique<DeepNorm>(scope, build);
                                  });
}

}  // namespace siamese::residual
