#include "siamese/residual/attn_res.h"

#include <ATen/ATen.h>

#include "siamese/base/check.h"
#include "siamese/ops/stream_attend.h"
#include "siamese/residual/pass.h"

namespace siamese::residual {
namespace {

struct DepthRead {
  Streams streams;
  at::Tensor result;
};

// A read of all sources: the query, the gain of the keys, and the norm of the sum, whose owner gives it.
class DepthAttention {
 public:
  DepthAttention() = default;
  DepthAttention(const nn::Scope& scope, const Build& build)
      : eps_(build.norm.eps),
        query_(scope.add("query", nn::ParameterKind::scalar, {build.width}, nn::Init::zeros())),
        key_norm_(scope.child("key_norm"), build.width, {.kind = nn::NormKind::rms, .eps = build.norm.eps}) {}

  DepthRead operator()(const Streams& streams, const nn::Norm& norm) const {
    std::vector<at::Tensor> sources;
    for (const auto& stream : streams.list) sources.push_back(stream.value);
    at::Tensor branch;  // a write defers to the last source alone
    if (streams.pending) branch = gated(streams.pending->branch).to(sources.back().scalar_type());
    ops::StreamAttended made = ops::stream_attend(sources, branch, query_.value() * key_norm_.gain().value(), eps_,
                                                  norm.step(), streams.rounds_input);
    return {streams.replaced(std::move(made.streams)), std::move(made.input)};
  }

  // a: [..., sources], of the same read in plain expressions.
  at::Tensor weights(const Streams& streams) const {
    const at::Tensor query = query_.value() * key_norm_.gain().value();
    std::vector<at::Tensor> scores;
    for (const auto& [name, source] : flush(streams).list) {
      scores.push_back(at::matmul(source, query.to(source.scalar_type())) * at::rsqrt(source.square().mean(-1) + eps_));
    }
    return at::softmax(at::stack(scores, -1), -1);
  }

 private:
  double eps_ = 0;
  nn::Slot query_;
  nn::Norm key_norm_;
};

class AttnResJunction : public Junction {
 public:
  AttnResJunction(const AttnResOptions& options, const nn::Scope& scope, const Site& at, const Build& build)
      : Junction(at), options_(options), norm_(scope.child("norm"), build.width, build.branch_input_norm()) {
    if (at.index > 0) attention_ = DepthAttention(scope, build);
  }

  ReadResult read(const Streams& streams, Recorder* recorder) const override {
    const bool one_source = site().index == 0;
    DepthRead made = one_source ? DepthRead{streams, input_of_first(norm_, streams)} : attention_(streams, norm_);
    if (options_.block > 0 && !one_source && starts_source()) {
      made.streams.list.back().name = "b" + std::to_string(site().block / options_.block);  // p is full
    }
    for (const auto& stream : made.streams.list) record(recorder, stream.name, stream.value, {});
    return {std::move(made.streams), std::move(made.result)};
  }

  Streams write(const Streams& streams, const Branch& branch) const override {
    if (starts_source()) {
      const std::string name = options_.block == 0 ? "v" + std::to_string(site().index + 1) : "p";
      return streams.with(name, gated(branch).to(streams[0].scalar_type()));
    }
    std::vector<double> last_alone(streams.list.size(), 0.0);
    last_alone.back() = 1;
    return streams.deferring({branch, last_alone});
  }

  StreamWeights weights(const Streams& streams) const override {
    if (site().index == 0) return {.input = at::ones_like(streams[0].narrow(-1, 0, 1)), .mix = {}};
    return {.input = attention_.weights(streams), .mix = {}};
  }

 private:
  // Whether the branch of this site begins a source, rather than adds to the last one.
  bool starts_source() const {
    return options_.block == 0 || (site().kind == SiteKind::attention && site().block % options_.block == 0);
  }

  AttnResOptions options_;
  nn::Norm norm_;
  DepthAttention attention_;
};

class AttentionResiduals : public Topology {
 public:
  AttentionResiduals(const AttnResOptions& options, const nn::Scope& scope, const Build& build)
      : options_(options), build_(build) {
    const nn::Scope close = scope.child("close");
    if (!build.modulated) final_norm_ = nn::Norm(close.child("norm"), build.width, build.norm);
    attention_ = DepthAttention(close, build);
  }

  Streams open(const at::Tensor& embedding) const override {
    return {{{options_.block == 0 ? "v0" : "b0", embedding}}, {}, {}};
  }
  std::unique_ptr<Junction> junction(const nn::Scope& scope, const Site& site) const override {
    return std::make_unique<AttnResJunction>(options_, scope, site, build_);
  }
  at::Tensor close(const Streams& streams) const override { return attention_(streams, final_norm_).result; }
  StreamWeights weights(const Streams& streams) const override {
    return {.input = attention_.weights(streams), .mix = {}};
  }
  std::string_view lost_without_true_norm() const override { return "it does not start as Pre-Norm"; }
  // The attention over one source is that source.
  at::Tensor lens(const Streams& streams, std::optional<size_t> only) const override {
    return only ? final_norm_(flush(streams)[*only]) : close(streams);
  }

 private:
  AttnResOptions options_;
  Build build_;
  nn::Norm final_norm_;
  DepthAttention attention_;
};

}  // namespace

void AttnResOptions::check() const {
  if (block < 0) throw UsageError("attn_res.block: expected 0 or a number of blocks, got " + std::to_string(block));
}

Scheme attn_res_scheme() {
  return define_scheme<AttnResOptions>(
      {.name = "attn_res",
       .equation = "h = sum_j softmax_j(w . rms(v_j)) v_j;  v_{i+1} = G(LN(h));  out = LN(h)",
       .paper = "Attention Residuals, arXiv 2603.15031",
       .full = R"(read of sources V_0 ... V_m, with its own w and g:
  a = softmax over j of  w . rms(V_j; g);   h = sum_j a_j V_j
v_0 = E
v_{i+1} = G_i( LN_i( h ) )                    h a read of v_0 ... v_i (site 0: h = E)
output = LN_final( a read of v_0 ... v_2L )
block=S, E and sums of the branches of S blocks as sources:
  b_0 = E;   p empty
  attention of block l, S divides l > 0:  b_{l/S} = p, then p is empty
  o  = G_i( LN_i( h ) )                       h a read of b_0 ... b_k, and of p unless empty
  p <- p + o                                  (o where p was empty)
  output = LN_final( a read of b_0 ... b_k, p )
keys by RMSNorm, values raw, no 1 / sqrt(d)
init: w = 0 (the mean of the sources: Pre-Norm at the start), g = 1)"},
      [](const AttnResOptions& options, const nn::Scope& scope, const Build& build) {
        return std::make_unique<AttentionResiduals>(options, scope, build);
      });
}

}  // namespace siamese::residual
