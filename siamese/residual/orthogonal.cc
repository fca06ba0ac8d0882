#include "siamese/residual/orthogonal.h"

#include <numeric>

#include <ATen/ATen.h>

#include "siamese/ops/stream_mix.h"
#include "siamese/ops/wide.h"
#include "siamese/residual/one_stream.h"
#include "siamese/residual/pre.h"

namespace siamese::residual {
namespace {

constexpr double kOrthogonalEps = 1e-6;

class OrthogonalJunction : public Junction {
 public:
  OrthogonalJunction(const OrthogonalOptions& options, const nn::Scope& scope, const Site& at, const Build& build)
      : Junction(at), over_(options.over), pre_(pre_junction(scope, at, build)) {}

  ReadResult read(const Streams& streams, Recorder* recorder) const override { return pre_->read(streams, recorder); }

  Streams write(const Streams& streams, const Branch& branch) const override {
    const at::Tensor& h = streams[0];
    const at::Tensor o = gated(branch).to(h.scalar_type());
    const at::Tensor share = (dots(h, o) / (dots(h, h) + kOrthogonalEps)).to(h.scalar_type());
    return streams.replaced(ops::stream_mix({h}, (1 - share).unsqueeze(-1), o, at::ones_like(share)));
  }

 private:
  // [..., 1], for each token.
  at::Tensor dots(const at::Tensor& a, const at::Tensor& b) const {
    const at::Tensor of_tokens = (ops::wide(a) * ops::wide(b)).sum(-1, /*keepdim=*/true);
    if (over_ == DotProducts::feature || a.dim() < 3) return of_tokens;
    std::vector<int64_t> tokens(static_cast<size_t>(a.dim() - 2));
    std::iota(tokens.begin(), tokens.end(), 1);
    return of_tokens.sum(tokens, /*keepdim=*/true).expand_symint(of_tokens.sym_sizes());
  }

  DotProducts over_;
  std::unique_ptr<Junction> pre_;
};

class Orthogonal : public OneStream {
 public:
  Orthogonal(const OrthogonalOptions& options, const nn::Scope& scope, const Build& build)
      : OneStream(scope, build), options_(options) {}
  std::unique_ptr<Junction> junction(const nn::Scope& scope, const Site& site) const override {
    return std::make_unique<OrthogonalJunction>(options_, scope, site, build());
  }
  bool mixes_tokens() const override { return options_.over == DotProducts::sample; }

 private:
  OrthogonalOptions options_;
};

}  // namespace

Scheme orthogonal_scheme() {
  return define_scheme<OrthogonalOptions>(
      {.name = "orthogonal",
       .equation = "o = G(LN(h));  h <- h + o - (h.o / (h.h + eps)) h;  out = LN(h)",
       .paper = "Orthogonal residual update, arXiv 2505.11881",
       .full = R"(h_0 = E
o   = G_i( LN_i(h) )
h  <- h + o - ( h.o / (h.h + eps) ) h         eps = 1e-6; dot products over the features of one token
                                              (over=sample: over all tokens of a sample; not in causal models)
output = LN_final(h))"},
      [](const OrthogonalOptions& options, const nn::Scope& scope, const Build& build) {
        return std::make_unique<Orthogonal>(options, scope, build);
      });
}

}  // namespace siamese::residual
