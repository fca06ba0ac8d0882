#include "siamese/residual/hybrid.h"

#include "siamese/residual/one_stream.h"
#include "siamese/residual/pass.h"
#include "siamese/residual/pre.h"

namespace siamese::residual {
namespace {

class HybridJunction : public Junction {
 public:
  HybridJunction(const nn::Scope& scope, const Site& at, const Build& build) : Junction(at) {
    if (at.kind == SiteKind::ffn) norm_ = nn::Norm(scope.child("norm"), build.width, build.norm);
  }

  ReadResult read(const Streams& streams, Recorder* recorder) const override {
    ops::Junction pass = pass_over(streams);
    pass.half_input = false;  // it is the stream, too
    pass.y_norm = norm_.step();
    const ops::JunctionResult made = ops::junction(pass);
    record(recorder, "h", made.y, site().kind == SiteKind::ffn ? made.input : at::Tensor());
    return {streams.replaced({made.input}), made.input};  // the norm's output is what the FFN is added to
  }

  Streams write(const Streams& streams, const Branch& branch) const override {
    return streams.deferring({branch, {1.0}});
  }

 private:
  nn::Norm norm_;  // FFN sites only
};

class Hybrid : public OneStream {
 public:
  Hybrid(const HybridOptions& options, const nn::Scope& scope, const Build& build)
      : OneStream(scope, build), options_(options) {}
  std::unique_ptr<Junction> junction(const nn::Scope& scope, const Site& site) const override {
    if (options_.first == HybridFirst::pre && site.block == 0) return pre_junction(scope, site, build());
    return std::make_unique<HybridJunction>(scope, site, build());
  }
  nn::AttentionNorm attention_norm(const Site&) const override { return nn::AttentionNorm::qkv; }

 private:
  HybridOptions options_;
};

}  // namespace

Scheme hybrid_scheme() {
  return define_scheme<HybridOptions>({.name = "hybrid",
                                       .equation = "y = x + A_qkvnorm(x);  z = LN(y);  x <- z + F(z);  out = LN(x)",
                                       .paper = "HybridNorm, arXiv 2503.04598",
                                       .full = R"(x_0 = E
y   = x + A_l(x)
z   = LN_l(y)
x  <- z + F_l(z)
output = LN_final(x)
attention: RMSNorm on each head of q, k and v
first=pre (HybridNorm*), block 0:  y = x + A_0( LN_a(x) );  x <- y + F_0( LN_f(y) ))"},
                                      [](const HybridOptions& options, const nn::Scope& scope, const Build& build) {
                                        return std::make_unique<Hybrid>(options, scope, build);
                                      });
}

}  // namespace siamese::residual
