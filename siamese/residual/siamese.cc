#include "siamese/residual/siamese.h"

#include <cmath>

#include "siamese/ops/operand.h"
#include "siamese/residual/pass.h"

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

// For a gain that shall not start at 1.
void start_gain(const nn::Slot& gain, double value) {
  if (value == 1 || !gain.defined()) return;
  nn::set_initial(gain, [value](at::Tensor fresh) { fresh.fill_(value); });
}

class SiameseJunction : public Junction {
 public:
  SiameseJunction(const SiameseOptions& options, const nn::Scope& scope, const Site& at, const Build& build)
      : Junction(at),
        form_(options.form),
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
    start_gain(raw_x ? x_scale_ : x_norm_.gain(), options.gain_x);
    start_gain(y_norm_.gain(), options.gain_y);
  }

  ReadResult read(const Streams& streams, Recorder* recorder) const override {
    ops::Junction pass = pass_over(streams);
    if (form_ == SiameseForm::read) pass.x_norm = x_norm_.step();
    pass.x_scale = x_scale_.value();
    pass.y_norm = y_norm_.step();
    pass.input_norm = input_norm_.step();
    const ops::JunctionResult made = ops::junction(pass);
    if (recorder != nullptr) {
      record(recorder, "X", made.x_sum, pass.x_norm.present ? made.x : at::Tensor());
      record(recorder, "Y", made.y, y_norm_(made.y));
    }
    return {streams.replaced({made.x, made.y}), made.input};
  }

  Streams write(const Streams& streams, const Branch& branch) const override {
    if (form_ == SiameseForm::read) return streams.deferring({branch, {x_coefficient_, 1.0}});
    const Branch floats{ops::from_operand(branch.value), branch.gate};  // used twice: its gradients add up as floats
    const at::Tensor x = norm_of_sum(x_norm_, streams[kX], 1, floats, x_coefficient_);
    return streams.replaced({x, streams[kY]}).deferring({floats, {0.0, 1.0}});
  }

 private:
  SiameseForm form_;
  double x_coefficient_;
  nn::Norm x_norm_;
  nn::Norm y_norm_;
  nn::Norm input_norm_;
  nn::Slot x_scale_;  // c1
};

class Siamese : public Topology {
 public:
  Siamese(const SiameseOptions& options, const nn::Scope& scope, const Build& build)
      : options_(options), build_(build) {
    const nn::Scope close = scope.child("close");
    if (options.form == SiameseForm::read) x_norm_ = nn::Norm(close.child("x_norm"), build.width, build.norm);
    y_norm_ = nn::Norm(close.child("y_norm"), build.width, build.norm);
    if (options.final_norm && !build.modulated) final_norm_ = nn::Norm(close.child("norm"), build.width, build.norm);
    start_gain(x_norm_.gain(), options.gain_x);
    start_gain(y_norm_.gain(), options.gain_y);
  }

  Streams open(const at::Tensor& embedding) const override { return {{{"X", embedding}, {"Y", embedding}}, {}, {}}; }
  std::unique_ptr<Junction> junction(const nn::Scope& scope, const Site& site) const override {
    return std::make_unique<SiameseJunction>(options_, scope, site, build_);
  }
  at::Tensor close(const Streams& streams) const override {
    ops::Junction pass = pass_over(streams);
    pass.x_norm = x_norm_.step();
    pass.y_norm = y_norm_.step();
    pass.input_norm = final_norm_.step();
    return ops::junction(pass).input;
  }
  at::Tensor lens(const Streams& streams, std::optional<size_t> only) const override {
    if (!only) return close(streams);
    const Streams now = flush(streams);
    return final_norm_(*only == kX ? x_norm_(now[kX]) : y_norm_(now[*only]));
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

SiameseOptions SiameseOptions::defaults() const {
  SiameseOptions fallback;
  fallback.final_norm = form == SiameseForm::read;
  return fallback;
}

void SiameseOptions::check() const {
  if (x == SiameseX::hybrid && form == SiameseForm::write) {
    throw UsageError(
        "siamese(x=hybrid, form=write): x=hybrid exists in the read form only: between blocks its X is not normalised "
        "at all, so there is no write to move the norm to");
  }
  for (const auto& [key, gain] : {std::pair{"siamese.gain_x", gain_x}, std::pair{"siamese.gain_y", gain_y}}) {
    if (gain != 0) check_factor(key, gain);
  }
  if (gain_x == 0 && gain_y == 0) {
    throw UsageError("siamese(gain_x=0, gain_y=0): expected one of them above 0: no branch would see anything");
  }
}

Scheme siamese_scheme() {
  return define_scheme<SiameseOptions>(
      {.name = "siamese",
       .equation = "X <- P(X);  O = G(I(X + Q(Y)));  X <- X + O/c;  Y <- Y + O;  out = F(P(X) + Q(Y))",
       .paper = "SiameseNorm, arXiv 2602.08064",
       .full = R"(X_0 = Y_0 = E
form=read:
  X  <- P_i(X);   O = G_i( I_i( X + Q_i(Y) ) )
  X  <- X + O / c_i;   Y <- Y + O
  output = F( P(X) + Q(Y) )
form=write (Algorithm 1 as printed: siamese(form=write, input_norm=false, depth_scale=none)):
  O   = G_i( I_i( X + Q_i(Y) ) )
  X  <- P_i( X + O / c_i );   Y <- Y + O
  output = X + Q(Y)
x=hybrid (form=read), attention with RMSNorm on each head of q, k and v, c1 learned, ones at the start:
  A   = A_l( c1_l X + Q_a(Y) );   X <- X + A / c_l;   Y <- Y + A
  X  <- P_f(X);   O = F_l( I_f( X + Q_f(Y) ) );   X <- X + O / c_l;   Y <- Y + O
  output = F( P(X) + Q(Y) )
I_i only with input_norm, F only with final_norm
c_i by depth_scale: block sqrt(2(l+1)), sublayer sqrt(i+1), layer sqrt(l+1), none 1; block l and site i from 0
init: gains 1; gain_x: those of all P and c1, gain_y: those of all Q)"},
      [](const SiameseOptions& options, const nn::Scope& scope, const Build& build) {
        return std::make_unique<Siamese>(options, scope, build);
      });
}

}  // namespace siamese::residual
