#include "siamese/residual/resi_dual.h"

#include <ATen/ATen.h>

#include "siamese/residual/pass.h"

namespace siamese::residual {
namespace {

enum { kPost, kSum };  // stream order: x, r

class ResiDualJunction : public Junction {
 public:
  ResiDualJunction(const ResiDualOptions& options, const nn::Scope& scope, const Site& at, const Build& build)
      : Junction(at), scale_(options.residual_scale), norm_(scope.child("norm"), build.width, build.norm) {}

  ReadResult read(const Streams& streams, Recorder* recorder) const override {
    Streams now = flush(streams);
    record(recorder, "x", now[kPost], {});
    record(recorder, "r", now[kSum], {});
    at::Tensor input = now[kPost];
    return {std::move(now), std::move(input)};
  }

  Streams write(const Streams& streams, const Branch& branch) const override {
    const at::Tensor x = norm_of_sum(norm_, streams[kPost], 1, branch);
    return streams.replaced({x, streams[kSum]}).deferring({branch, {0.0, scale_}});
  }

 private:
  double scale_;
  nn::Norm norm_;
};

class ResiDual : public Topology {
 public:
  ResiDual(const ResiDualOptions& options, const nn::Scope& scope, const Build& build)
      : options_(options), build_(build) {
    nn::NormSpec spec = build.norm;
    if (options.final_eps > 0) spec.eps = options.final_eps;
    r_norm_ = nn::Norm(scope.child("close").child("r_norm"), build.width, spec);
  }

  Streams open(const at::Tensor& embedding) const override {
    const double s = options_.residual_scale;
    return {{{"x", embedding}, {"r", s == 1 ? embedding : embedding * s}}, {}, {}};
  }
  std::unique_ptr<Junction> junction(const nn::Scope& scope, const Site& site) const override {
    return std::make_unique<ResiDualJunction>(options_, scope, site, build_);
  }
  at::Tensor close(const Streams& streams) const override {
    ops::Junction pass = pass_over(streams);
    pass.y_norm = r_norm_.step();
    if (options_.x_weight != 1) pass.x_scale = at::full({build_.width}, options_.x_weight, pass.x.options());
    return ops::junction(pass).input;
  }
  at::Tensor lens(const Streams& streams, std::optional<size_t> only) const override {
    if (!only) return close(streams);
    const Streams now = flush(streams);
    return *only == kPost ? now[kPost] * options_.x_weight : r_norm_(now[*only]);
  }

 private:
  ResiDualOptions options_;
  Build build_;
  nn::Norm r_norm_;
};

}  // namespace

void ResiDualOptions::check() const {
  check_factor("resi_dual.residual_scale", residual_scale);
  if (x_weight != 0) check_factor("resi_dual.x_weight", x_weight);
  if (!(final_eps >= 0 && final_eps <= 1)) {
    throw UsageError("resi_dual.final_eps: expected a number from 0 to 1, got " + config::print(final_eps).text);
  }
}

Scheme resi_dual_scheme() {
  return define_scheme<ResiDualOptions>({.name = "resi_dual",
                                         .equation = "o = G(x);  r <- r + o;  x <- LN(x + o);  out = x + LN(r)",
                                         .paper = "ResiDual, arXiv 2304.14802",
                                         .full = R"(x_0 = E;   r_0 = s E
o   = G_i(x)
r  <- r + s o
x  <- LN_i( x + o )
output = a x + LN_final(r)                    s = residual_scale, a = x_weight)"},
                                        [](const ResiDualOptions& options, const nn::Scope& scope, const Build& build) {
                                          return std::make_unique<ResiDual>(options, scope, build);
                                        });
}

}  // namespace siamese::residual
