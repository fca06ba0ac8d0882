#include "siamese/residual/mhc.h"

#include <cmath>

#include <ATen/ATen.h>

#include "siamese/ops/activation.h"
#include "siamese/ops/row_linear.h"
#include "siamese/ops/sinkhorn.h"
#include "siamese/residual/many_streams.h"

namespace siamese::residual {
namespace {

using nn::Init;
using nn::ParameterKind;

class MhcJunction : public MixingJunction {
 public:
  MhcJunction(const MhcOptions& options, const nn::Scope& scope, const Site& at, const Build& build)
      : MixingJunction(scope, at, build), options_(options), width_(build.width), eps_(build.norm.eps) {
    const int64_t n = options.streams;
    const int64_t in = n * build.width;
    const int64_t out = n * n + 2 * n;
    const bool single = options.init == MhcInit::single;
    const Init xavier = Init::uniform(std::sqrt(6.0 / static_cast<double>(in + out)));
    phi_ = scope.child("mix").add("weight", ParameterKind::linear, {out, in}, single ? Init::zeros() : xavier);
    scale_ = scope.add("mix_scale", ParameterKind::scalar, {3}, {.constant = 0.01});
    const Init off{.constant = single ? -3.0 : 0.0};
    pre_bias_ = scope.add("pre_bias", ParameterKind::scalar, {n}, off);
    post_bias_ = scope.add("post_bias", ParameterKind::scalar, {n}, Init::zeros());
    res_bias_ = scope.add("res_bias", ParameterKind::scalar, {n, n}, off);
    if (!single) return;
    nn::set_initial(pre_bias_, [&](at::Tensor value) { value[at.index % n] = 3; });
    nn::set_initial(res_bias_, [](at::Tensor value) { value.fill_diagonal_(3); });
  }

 protected:
  Mixing mixing(std::vector<at::Tensor>& streams) const override {
    const int64_t n = options_.streams;
    // v phi and v^2 stream by stream: v itself would be a copy of all streams.
    at::Tensor product;
    at::Tensor squares;
    for (int64_t i = 0; i < n; ++i) {
      at::Tensor& stream = streams[static_cast<size_t>(i)];
      ops::RowProjection made = ops::row_project(stream, phi_.value().narrow(1, i * width_, width_));
      stream = std::move(made.x);
      product = i == 0 ? made.y : product + made.y;
      squares = i == 0 ? made.squares : squares + made.squares;
    }
    const at::Tensor raw = product * at::rsqrt(squares / static_cast<double>(n * width_) + eps_);
    const auto each = [&](const nn::Slot& parameter) { return for_each_token(parameter.value(), streams[0]); };
    const at::Tensor scale = each(scale_);
    const auto part = [&](int64_t which, int64_t first, int64_t count) {
      return scale.narrow(-1, which, 1) * raw.narrow(-1, first, count);
    };
    const at::Tensor pre = part(0, 0, n) + each(pre_bias_);
    const at::Tensor post = part(1, n, n) + each(post_bias_);
    const at::Tensor res = part(2, 2 * n, n * n).unflatten(-1, {n, n}) + each(res_bias_);
    return {ops::sigmoid(pre), ops::sinkhorn(res, options_.iterations), 2 * ops::sigmoid(post)};
  }

 private:
  MhcOptions options_;
  int64_t width_;
  double eps_;
  nn::Slot phi_;
  nn::Slot scale_;
  nn::Slot pre_bias_;
  nn::Slot post_bias_;
  nn::Slot res_bias_;
};

class ManifoldHyperConnections : public ManyStreams {
 public:
  ManifoldHyperConnections(const MhcOptions& options, const nn::Scope& scope, const Build& build)
      : ManyStreams(scope, build, options.streams), options_(options) {}
  std::unique_ptr<Junction> junction(const nn::Scope& scope, const Site& site) const override {
    return std::make_unique<MhcJunction>(options_, scope, site, build());
  }

 private:
  MhcOptions options_;
};

}  // namespace

void MhcOptions::check() const {
  check_stream_count("mhc.streams", streams);
  if (iterations < 1 || iterations > 1000) {
    throw UsageError("mhc.iterations: expected a number from 1 to 1000, got " + std::to_string(iterations));
  }
}

Scheme mhc_scheme() {
  return define_scheme<MhcOptions>(
      {.name = "mhc",
       .equation = "o = G(LN(H_pre x));  x <- Sinkhorn(H_res) x + H_post o;  out = LN(sum x)",
       .paper = "mHC, arXiv 2512.24880",
       .full = R"(x_0 = n copies of E
raw = v phi / sqrt(mean(v^2) + eps)           v = all n d numbers of the token
H_pre  = sigmoid( a_pre raw_pre + b_pre )
H_post = 2 sigmoid( a_post raw_post + b_post )
H_res  = Sinkhorn( a_res raw_res + b_res )    exp, then 20 times columns and rows to sum 1
x  <- H_res x + H_post' G_i( LN_i( H_pre x ) )
output = LN_final( sum of the streams )
init: a = 0.01; single: phi = 0, b_pre = -3 but +3 at stream i mod n, b_post = 0, b_res = -3 but +3 on the diagonal;
      xavier: phi Xavier-uniform, biases 0)"},
      [](const MhcOptions& options, const nn::Scope& scope, const Build& build) {
        return std::make_unique<ManifoldHyperConnections>(options, scope, build);
      });
}

}  // namespace siamese::residual
