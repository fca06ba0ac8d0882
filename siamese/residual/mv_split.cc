#include "siamese/residual/mv_split.h"

#include <ATen/ATen.h>

#include "siamese/ops/row_linear.h"
#include "siamese/residual/one_stream.h"
#include "siamese/residual/pass.h"

namespace siamese::residual {
namespace {

// The mean over the tokens of a sample, given to each of them: [samples, tokens..., width], as x. Both ways the sums
// over tokens are products with ones (ops/row_linear): LibTorch cuts its own by threads.
at::Tensor token_means(const at::Tensor& x) {
  if (x.dim() < 3) return x;
  const at::Tensor by_channel = x.flatten(1, -2).transpose(1, 2).contiguous();  // [samples, width, tokens]
  const c10::SymInt tokens = by_channel.sym_size(2);
  const at::Tensor ones = at::ones_symint({1, tokens}, x.options().requires_grad(false));
  const at::Tensor means = ops::row_linear(by_channel, ones) / at::Scalar(tokens);  // [samples, width, 1]
  return ops::row_linear(means, ones.t().contiguous()).transpose(1, 2).contiguous().view_symint(x.sym_sizes());
}

// y + scale x, then the norm, in one pass.
at::Tensor scaled_sum(const at::Tensor& y, const nn::Slot& scale, const at::Tensor& x, const ops::NormStep& norm = {}) {
  ops::Junction pass;
  pass.x = x;
  pass.y = y;
  pass.x_scale = scale.value();
  pass.input_norm = norm;
  return ops::junction(pass).input;
}

class MvSplitJunction : public Junction {
 public:
  MvSplitJunction(const MvSplitOptions& options, const nn::Scope& scope, const Site& at, const Build& build)
      : Junction(at), norm_at_(options.norm) {
    const bool reads = options.norm == MvSplitNorm::pre;
    norm_ = nn::Norm(scope.child("norm"), build.width, reads ? build.branch_input_norm() : build.norm);
    alpha_ = scope.add("alpha", nn::ParameterKind::scalar, {build.width}, nn::Init::zeros());
    beta_ = scope.add("beta", nn::ParameterKind::scalar, {build.width}, {.constant = 0.03});
  }

  ReadResult read(const Streams& streams, Recorder* recorder) const override {
    ops::Junction pass = pass_over(streams);
    if (norm_at_ == MvSplitNorm::pre) pass.y_norm = norm_.step();
    const ops::JunctionResult made = ops::junction(pass);
    record(recorder, "h", made.y, norm_at_ == MvSplitNorm::pre ? made.input : at::Tensor());
    return {streams.replaced({made.y}), made.input};
  }

  Streams write(const Streams& streams, const Branch& branch) const override {
    const at::Tensor& h = streams[0];
    const at::Tensor u = gated(branch).to(h.scalar_type());
    const at::Tensor mean = token_means(u);
    const at::Tensor moved = scaled_sum(h, alpha_, mean - token_means(h));
    const ops::NormStep norm = norm_at_ == MvSplitNorm::post ? norm_.step() : ops::NormStep{};
    return streams.replaced({scaled_sum(moved, beta_, u - mean, norm)});
  }

 private:
  MvSplitNorm norm_at_;
  nn::Norm norm_;
  nn::Slot alpha_;
  nn::Slot beta_;
};

class MvSplit : public OneStream {
 public:
  MvSplit(const MvSplitOptions& options, const nn::Scope& scope, const Build& build)
      : OneStream(scope, build,
                  {.embedding = options.norm == MvSplitNorm::post, .final = options.norm == MvSplitNorm::pre}),
        options_(options) {}
  std::unique_ptr<Junction> junction(const nn::Scope& scope, const Site& site) const override {
    return std::make_unique<MvSplitJunction>(options_, scope, site, build());
  }
  bool mixes_tokens() const override { return true; }

 private:
  MvSplitOptions options_;
};

}  // namespace

Scheme mv_split_scheme() {
  return define_scheme<MvSplitOptions>(
      {.name = "mv_split",
       .equation = "u = G(h);  h <- LN(h + beta (u - mean u) + alpha (mean u - mean h));  out = h",
       .paper = "MV-Split, arXiv 2605.06169; not in causal models",
       .full = R"(z   = h + beta_i (u - mean u) + alpha_i (mean u - mean h)   mean over the tokens of a sample
norm=post:
  h_0 = LN_emb(E);   u = G_i(h);   h <- LN_i(z);   output = h
norm=pre:
  h_0 = E;   u = G_i( LN_i(h) );   h <- z;   output = LN_final(h)
init: alpha 0, beta 0.03, vectors of width d)"},
      [](const MvSplitOptions& options, const nn::Scope& scope, const Build& build) {
        return std::make_unique<MvSplit>(options, scope, build);
      });
}

}  // namespace siamese::residual
