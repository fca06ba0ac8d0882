#include "siamese/residual/siamese.h"

#include <cmath>

#include <ATen/ATen.h>

namespace siamese::residual {
namespace {

enum { kX, kY };  // stream order

double depth_divisor(DepthScale scale, const Site& site) {
  switch (scale) {
    case DepthScale::block:
      return std::sqrt(2.0 * static_cast<double>(site.block + 1));
    case DepthScale::sublayer:
      return std::sqrt(static_cast<double>(site.index + 1));
    case DepthScale::layer:
      return std::sqrt(static_cast<double>(site.block + 1));
    case DepthScale::none:
      break;
  }
  return 1;
}

class SiameseJunction : public Junction {
 public:
  SiameseJunction(const SiameseOptions& options, const nn::Scope& scope, const Site& at, const Build& build)
      : Junction(at),
        x_coefficient_(1 / depth_divisor(options.depth_scale, at)),
        y_norm_(scope.child("y_norm"), build.width, build.norm) {
    // Attention under x=hybrid reads X raw, times c1: q, k and v carry the norms.
    const bool raw_x = options.x == SiameseX::hybrid && at.kind == SiteKind::attention;
    if (raw_x) {
      x_scale_ = scope.add("x_scale", nn::ParameterKind::norm, {build.width}, nn::Init::ones());
    } else {
      x_norm_ = nn::Norm(scope.child("x_norm"), build.width, build.norm);
      if (options.input_norm) {
        input_norm_ = nn::Norm(scope.child("input_norm"), build.width, build.branch_input_norm());
      }
    }
  }

  ReadResult read(const Streams& streams, Recorder* recorder) const override {
    const Streams sum = flush(streams);
    const at::Tensor x = x_norm_(sum[kX]);
    const at::Tensor y = y_norm_(sum[kY]);
    const bool raw_x = x_scale_.defined();
    record(recorder, "X", sum[kX], raw_x ? at::Tensor() : x);
    record(recorder, "Y", sum[kY], y);
    return {sum.replaced({x, sum[kY]}), input_norm_((raw_x ? x * x_scale_ : x) + y)};
  }

  Streams write(const Streams& streams, const Branch& branch) const override {
    return streams.deferring({branch, {x_coefficient_, 1.0}});
  }

 private:
  double x_coefficient_;
  nn::Norm x_norm_;
  nn::Norm y_norm_;
  nn::Norm input_norm_;
  at::Tensor x_scale_;  // c1
};

class SiameseTopology : public Topology {
 public:
  SiameseTopology(const SiameseOptions& options, const nn::Scope& scope, const Build& build)
      : options_(options),
        build_(build),
        x_norm_(scope.child("x_norm"), build.width, build.norm),
        y_norm_(scope.child("y_norm"), build.width, build.norm) {
    if (options.final_norm && !build.modulated) final_norm_ = nn::Norm(scope.child("norm"), build.width, build.norm);
  }

  Streams open(const at::Tensor& embedding) const override { return {{{"X", embedding}, {"Y", embedding}}, {}, {}}; }
  std::unique_ptr<Junction> junction(const nn::Scope& scope, const Site& site) const override {
    return std::make_unique<SiameseJunction>(options_, scope, site, build_);
  }
  at::Tensor close(const Streams& streams) const override {
    const Streams sum = flush(streams);
    return final_norm_(x_norm_(sum[kX]) + y_norm_(sum[kY]));
  }
  nn::AttentionNorm attention_norm(const Site&) const override {
    return options_.x == SiameseX::hybrid ? nn::AttentionNorm::qkv : nn::AttentionNorm::none;
  }

 private:
  SiameseOptions options_;
  Build build_;
  nn::Norm x_norm_;
  nn::Norm y_norm_;
  nn::Norm final_norm_;
};

}  // namespace

Scheme siamese_scheme() {
  return define_scheme<SiameseOptions>(
      {"siamese", "X = P(X);  O = G(I(X + Q(Y)));  X <- X + O/c;  Y <- Y + O;  out = F(P(X) + Q(Y))",
       "SiameseNorm, arXiv 2602.08064"},
      [](const SiameseOptions& options, const nn::Scope& scope, const Build& build) {
        return std::make_unique<SiameseTopology>(options, scope, build);
      });
}

}  // namespace siamese::residual
