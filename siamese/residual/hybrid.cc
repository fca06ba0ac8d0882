#include "siamese/residual/hybrid.h"

#include "siamese/residual/pre.h"

namespace siamese::residual {
namespace {

class HybridJunction : public Junction {
 public:
  HybridJunction(const nn::Scope& scope, const Site& at, const Build& build) : Junction(at) {
    if (at.kind == SiteKind::ffn) norm_ = nn::Norm(scope.child("norm"), build.width, build.norm);
  }

  ReadResult read(const Streams& streams, Recorder* recorder) const override {
    const Streams sum = flush(streams);
    if (site().kind == SiteKind::attention) {
      record(recorder, "h", sum[0], {});
      return {sum, sum[0]};
    }
    const at::Tensor base = norm_(sum[0]);
    record(recorder, "h", sum[0], base);
    return {sum.replaced({base}), base};
  }

  Streams write(const Streams& streams, const Branch& branch) const override {
    return streams.deferring({branch, {1.0}});
  }

 private:
  nn::Norm norm_;  // FFN sites only
};

class HybridTopology : public Topology {
 public:
  HybridTopology(const HybridOptions& options, const nn::Scope& scope, const Build& build)
      : options_(options), build_(build) {
    if (!build.modulated) final_norm_ = nn::Norm(scope.child("norm"), build.width, build.norm);
  }

  Streams open(const at::Tensor& embedding) const override { return {{{"h", embedding}}, {}, {}}; }
  std::unique_ptr<Junction> junction(const nn::Scope& scope, const Site& site) const override {
    if (options_.first == HybridFirst::pre && site.block == 0) return pre_junction(scope, site, build_);
    return std::make_unique<HybridJunction>(scope, site, build_);
  }
  at::Tensor close(const Streams& streams) const override { return final_norm_(flush(streams)[0]); }
  nn::AttentionNorm attention_norm(const Site&) const override { return nn::AttentionNorm::qkv; }

 private:
  HybridOptions options_;
  Build build_;
  nn::Norm final_norm_;
};

}  // namespace

Scheme hybrid_scheme() {
  return define_scheme<HybridOptions>(
      {"hybrid", "y = x + A_qkvnorm(x);  z = LN(y);  x' = z + F(z);  out = LN(x)", "HybridNorm, arXiv 2503.04598"},
      [](const HybridOptions& options, const nn::Scope& scope, const Build& build) {
        return std::make_unique<HybridTopology>(options, scope, build);
      });
}

}  // namespace siamese::residual
