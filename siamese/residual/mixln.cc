#include "siamese/residual/mixln.h"

#include <cmath>

#include "siamese/residual/one_stream.h"
#include "siamese/residual/post.h"
#include "siamese/residual/pre.h"

namespace siamese::residual {
namespace {

class MixLn : public OneStream {
 public:
  MixLn(const MixLnOptions& options, const nn::Scope& scope, const Build& build)
      : OneStream(scope, build), post_blocks_(options.post_blocks(build.blocks)) {}
  std::unique_ptr<Junction> junction(const nn::Scope& scope, const Site& site) const override {
    return site.block < post_blocks_ ? post_junction(scope, site, build()) : pre_junction(scope, site, build());
  }

 private:
  int64_t post_blocks_;
};

}  // namespace

void MixLnOptions::check() const {
  if (!(post >= 0 && post <= 1)) {
    throw UsageError("mixln.post: expected a share from 0 to 1, got " + config::print(post).text);
  }
}

int64_t MixLnOptions::post_blocks(int64_t blocks) const {
  // A share such as 0.29 of 100 must not lose a block to rounding.
  return static_cast<int64_t>(std::floor(post * static_cast<double>(blocks) + 1e-9));
}

Scheme mixln_scheme() {
  return define_scheme<MixLnOptions>(
      {.name = "mixln",
       .equation = "first blocks (a quarter): x <- LN(x + G(x)), then x <- x + G(LN(x));  out = LN(x)",
       .paper = "Mix-LN, arXiv 2412.13795",
       .full = R"(x_0 = E
x  <- LN_i( x + G_i(x) )                      in the first floor(post L) of the L blocks
x  <- x + G_i( LN_i(x) )                      in the others
output = LN_final(x))"},
      [](const MixLnOptions& options, const nn::Scope& scope, const Build& build) {
        return std::make_unique<MixLn>(options, scope, build);
      });
}

}  // namespace siamese::residual
