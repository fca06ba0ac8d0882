#include "siamese/residual/hc.h"

#include <ATen/ATen.h>

#include "siamese/ops/row_linear.h"
#include "siamese/residual/many_streams.h"

namespace siamese::residual {
namespace {

using nn::Init;
using nn::ParameterKind;

class HcJunction : public MixingJunction {
 public:
  HcJunction(const HcOptions& options, const nn::Scope& scope, const Site& at, const Build& build)
      : MixingJunction(scope, at, build), options_(options), width_(build.width) {
    const int64_t n = options.streams;
    input_mix_ = scope.add("input_mix", ParameterKind::scalar, {n}, Init::zeros());
    stream_mix_ = scope.add("stream_mix", ParameterKind::scalar, {n, n}, Init::zeros());
    output_mix_ = scope.add("output_mix", ParameterKind::scalar, {n}, Init::ones());
    nn::set_initial(input_mix_, [&](at::Tensor value) { value[at.index % n] = 1; });
    nn::set_initial(stream_mix_, [](at::Tensor value) { value.fill_diagonal_(1); });
    if (!options.dynamic) return;
    // Coefficients of a token may not depend on how large its streams are: a norm in the sense of the word.
    stream_norm_ = nn::Norm(scope.child("stream_norm"), build.width, build.norm.with_statistics());
    dynamic_ = scope.child("dynamic").add("weight", ParameterKind::linear, {n + 2, build.width}, Init::zeros());
    mix_scale_ = scope.add("mix_scale", ParameterKind::scalar, {1}, {.constant = 0.01});
    output_scale_ = scope.add("output_scale", ParameterKind::scalar, {1}, {.constant = 0.01});
  }

 protected:
  Mixing mixing(std::vector<at::Tensor>& streams) const override {
    if (!options_.dynamic) return {input_mix_.value(), stream_mix_.value().t(), output_mix_.value()};
    const int64_t n = options_.streams;
    std::vector<at::Tensor> rows;
    for (at::Tensor& stream : streams) rows.push_back(projected(stream));
    at::Tensor dynamic = at::stack(rows, -2);  // [..., n, n + 2]
    if (options_.tanh) dynamic = at::tanh(dynamic);
    const auto each = [&](const nn::Slot& parameter) { return for_each_token(parameter.value(), streams[0]); };
    const at::Tensor mix = each(mix_scale_).unsqueeze(-1) * dynamic.narrow(-1, 0, n + 1);
    return {mix.select(-1, 0) + each(input_mix_), (mix.narrow(-1, 1, n) + each(stream_mix_)).transpose(-1, -2),
            each(output_scale_) * dynamic.select(-1, n + 1) + each(output_mix_)};
  }

 private:
  // norm(H_i) W. An RMSNorm leaves its gain to W and its factor to the product, so the stream is only read.
  at::Tensor projected(at::Tensor& stream) const {
    const ops::NormStep norm = stream_norm_.step();
    if (norm.layer) return ops::row_linear(stream_norm_(stream), dynamic_.value());
    const at::Tensor weight = norm.gain.defined() ? dynamic_.value() * norm.gain : dynamic_.value();
    ops::RowProjection made = ops::row_project(stream, weight);
    stream = std::move(made.x);
    return made.y * at::rsqrt(made.squares / static_cast<double>(width_) + norm.eps);
  }

  HcOptions options_;
  int64_t width_;
  nn::Slot input_mix_;
  nn::Slot stream_mix_;
  nn::Slot output_mix_;
  nn::Norm stream_norm_;  // the rest only when dynamic
  nn::Slot dynamic_;
  nn::Slot mix_scale_;
  nn::Slot output_scale_;
};

class HyperConnections : public ManyStreams {
 public:
  HyperConnections(const HcOptions& options, const nn::Scope& scope, const Build& build)
      : ManyStreams(scope, build, options.streams), options_(options) {}
  std::unique_ptr<Junction> junction(const nn::Scope& scope, const Site& site) const override {
    return std::make_unique<HcJunction>(options_, scope, site, build());
  }
  BranchInit branch_init(const Site&) const override { return {.output = options_.output_init}; }

 private:
  HcOptions options_;
};

}  // namespace

void HcOptions::check() const {
  check_stream_count("hc.streams", streams);
  check_factor("hc.output_init", output_init);
}

Scheme hc_scheme() {
  return define_scheme<HcOptions>({.name = "hc",
                                   .equation = "h = A_m' H;  o = G(LN(h));  H <- A_r' H + B o;  out = LN(sum H)",
                                   .paper = "Hyper-Connections, arXiv 2409.19606",
                                   .full = R"(H_0 = n copies of E
h   = A_m' H                                  sum over the streams
o   = G_i( LN_i(h) )
H  <- A_r' H + B o
output = LN_final( sum of the streams )
dynamic=true, per token, Hbar = norm(H) by row:
  A_m = s_a tanh(Hbar W_m) + A_m,static;  A_r = s_a tanh(Hbar W_r) + A_r,static;  B = s_b tanh(Hbar W_b) + B_static
init: A_m one-hot at stream i mod n, A_r identity, B ones, W zero, s_a = s_b = 0.01 (Pre-Norm at the start))"},
                                  [](const HcOptions& options, const nn::Scope& scope, const Build& build) {
                                    return std::make_unique<HyperConnections>(options, scope, build);
                                  });
}

}  // namespace siamese::residual
