#include "siamese/residual/pre.h"

namespace siamese::residual {
namespace {

class PreJunction : public Junction {
 public:
  PreJunction(const nn::Scope& scope, const Site& at, const Build& build)
      : Junction(at), norm_(scope.child("norm"), build.width, build.branch_input_norm()) {}

  ReadResult read(const Streams& streams, Recorder* recorder) const override {
    Streams now = flush(streams);
    at::Tensor input = norm_(now[0]);
    record(recorder, "h", now[0], input);
    return {std::move(now), std::move(input)};
  }

  Streams write(const Streams& streams, const Branch& branch) const override {
    return streams.deferring({branch, {1.0}});
  }

 private:
  nn::Norm norm_;
};

class PreTopology : public Topology {
 public:
  PreTopology(const nn::Scope& scope, const Build& build) : build_(build) {
    if (!build.modulated) final_norm_ = nn::Norm(scope.child("norm"), build.width, build.norm);
  }

  Streams open(const at::Tensor& embedding) const override { return {{{"h", embedding}}, {}, {}}; }
  std::unique_ptr<Junction> junction(const nn::Scope& scope, const Site& site) const override {
    return pre_junction(scope, site, build_);
  }
  at::Tensor close(const Streams& streams) const override { return final_norm_(flush(streams)[0]); }

 private:
  Build build_;
  nn::Norm final_norm_;
};

}  // namespace

std::unique_ptr<Junction> pre_junction(const nn::Scope& scope, const Site& site, const Build& build) {
  return std::make_unique<PreJunction>(scope, site, build);
}

Scheme pre_scheme() {
  return define_scheme<NoOptions>({"pre", "h <- h + G(LN(h));  out = LN(h)", "Pre-Norm, arXiv 2002.04745"},
                                  [](const NoOptions&, const nn::Scope& scope, const Build& build) {
                                    return std::make_unique<PreTopology>(scope, build);
                                  });
}

}  // namespace siamese::residual
