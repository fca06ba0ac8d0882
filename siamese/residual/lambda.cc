#include "siamese/residual/lambda.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include "siamese/ops/stream_mix.h"
#include "siamese/residual/pass.h"
#include "siamese/residual/pre.h"

namespace siamese::residual {
namespace {

// Streams: h, then e with x0, then c after the mark.

// Terms of a weighted sum of streams, a weight one number for all tokens.
struct WeightedTerms {
  std::vector<at::Tensor> terms;
  std::vector<at::Tensor> weights;  // [1] each

  void add(const at::Tensor& term, const at::Tensor& weight) {
    terms.push_back(term);
    weights.push_back(weight);
  }
  // h, and what is pending on it, with the same weight.
  void add_first(const Streams& streams, const at::Tensor& weight) {
    add(streams[0], weight);
    if (!streams.pending) return;
    const Pending& pending = *streams.pending;
    const at::Tensor branch = gated({ops::apply(pending.output_norm, pending.branch.value), pending.branch.gate});
    add(branch.to(streams[0].scalar_type()), weight * pending.coefficients[0]);
  }
  ops::StreamRead summed(const ops::NormStep& norm = {}) const {
    return ops::stream_read(terms, at::cat(weights).to(terms[0].scalar_type()), norm);
  }
};

class LambdaAttention : public Junction {
 public:
  LambdaAttention(const LambdaOptions& options, const nn::Scope& scope, const Site& at, const Build& build)
      : Junction(at),
        marks_(options.backout.on && at.block == options.marked_block(build.blocks) + 1),
        pre_(pre_junction(scope, at, build)) {
    const double last = static_cast<double>(std::max<int64_t>(1, at.blocks - 1));
    const double depth = static_cast<double>(at.block) / last;
    scale_ = scope.add("scale", nn::ParameterKind::scalar, {1}, {.constant = 1.15 - 0.10 * depth});
    if (options.x0) {
      x0_scale_ = scope.add("x0_scale", nn::ParameterKind::scalar, {1}, {.constant = 0.20 - 0.15 * depth});
    }
  }

  ReadResult read(const Streams& streams, Recorder* recorder) const override {
    if (!marks_) return pre_->read(mixed(streams), recorder);
    const Streams now = flush(streams);
    return pre_->read(mixed(now.with("c", at::alias(now[0]))), recorder);
  }

  Streams write(const Streams& streams, const Branch& branch) const override { return pre_->write(streams, branch); }

 private:
  Streams mixed(const Streams& streams) const {
    WeightedTerms sum;
    if (x0_scale_.defined()) sum.add(streams[1], x0_scale_.value());
    sum.add_first(streams, scale_.value());
    const ops::StreamRead made = sum.summed();
    Streams next = with_first(streams, made.input);
    if (x0_scale_.defined()) next.list[1].value = made.streams[0];
    return next;
  }

  bool marks_;
  std::unique_ptr<Junction> pre_;
  nn::Slot scale_;     // r
  nn::Slot x0_scale_;  // m
};

class Lambda : public Topology {
 public:
  Lambda(const LambdaOptions& options, const nn::Scope& scope, const Build& build) : options_(options), build_(build) {
    const nn::Scope close = scope.child("close");
    if (options.embed_norm) embedding_norm_ = nn::Norm(scope.child("open").child("norm"), build.width, build.norm);
    if (!build.modulated) final_norm_ = nn::Norm(close.child("norm"), build.width, build.norm);
    if (options.backout.on) backout_ = close.add("backout", nn::ParameterKind::scalar, {1}, {.constant = 0.2});
  }

  Streams open(const at::Tensor& embedding) const override {
    const at::Tensor e = embedding_norm_(embedding);
    if (!options_.x0) return {{{"h", e}}, {}, {}};
    return {{{"h", e}, {"e", e}}, {}, {}};
  }
  std::unique_ptr<Junction> junction(const nn::Scope& scope, const Site& site) const override {
    if (site.kind == SiteKind::ffn) return pre_junction(scope, site, build_);
    return std::make_unique<LambdaAttention>(options_, scope, site, build_);
  }
  at::Tensor close(const Streams& streams) const override {
    if (!options_.backout.on) {
      ops::Junction pass = pass_over_first(streams);
      pass.y_norm = final_norm_.step();
      return ops::junction(pass).input;
    }
    const at::Tensor beta = backout_.value();
    WeightedTerms sum;
    if (options_.marked_block(build_.blocks) == build_.blocks - 1) {  // what is marked is h itself
      sum.add_first(streams, 1 - beta);
    } else {
      sum.add_first(streams, at::ones_like(beta));
      sum.add(streams.list.back().value, -beta);
    }
    return sum.summed(final_norm_.step()).input;
  }
  // Before the mark there is no c, and nothing is backed out yet. e has no term.
  at::Tensor lens(const Streams& streams, std::optional<size_t> only) const override {
    const Streams now = flush(streams);
    const bool marked = now.list.back().name == "c";
    if (!only && (marked || options_.marked_block(build_.blocks) == build_.blocks - 1)) return close(streams);
    if (only.value_or(0) == 0) return final_norm_(now[0]);
    const at::Tensor& stream = now[*only];
    return marked && *only + 1 == now.list.size() ? final_norm_(-backout_.value() * stream) : at::Tensor();
  }

 private:
  LambdaOptions options_;
  Build build_;
  nn::Norm embedding_norm_;
  nn::Norm final_norm_;
  nn::Slot backout_;  // beta
};

}  // namespace

void read(const config::Value& value, const std::string& path, Backout& out) {
  out.on = value.text != "none";
  if (out.on) config::read(value, path, out.depth);
}

config::Value print(const Backout& backout) {
  return backout.on ? config::print(backout.depth) : config::Value::scalar("none");
}

void LambdaOptions::check() const {
  if (backout.on && !(backout.depth >= 0 && backout.depth < 1)) {
    throw UsageError("lambda.backout: expected none or a fraction of the depth from 0 to below 1, got " +
                     print(backout).text);
  }
}

int64_t LambdaOptions::marked_block(int64_t blocks) const {
  if (!backout.on) return -1;
  const auto block = static_cast<int64_t>(std::floor(backout.depth * static_cast<double>(blocks)));
  return std::min(block, blocks - 1);
}

Scheme lambda_scheme() {
  return define_scheme<LambdaOptions>(
      {.name = "lambda",
       .equation = "h = e = LN(E);  per block h <- r h + m e, then h <- h + G(LN(h));  out = LN(h - beta c)",
       .paper = "x0 residual with backout, nanochat (github.com/karpathy/nanochat)",
       .full = R"(h_0 = e = LN_emb(E)                           (embed_norm=false: E)
h  <- r_l h + m_l e                           once a block, before attention (x0=false: r_l h)
h  <- h + G_i( LN_i(h) )
c   = h after block floor(backout L)          (backout=none: no c)
output = LN_final( h - beta c )
init: r 1.15 to 1.05 and m 0.20 to 0.05, linear from the first block to the last; beta 0.2)"},
      [](const LambdaOptions& options, const nn::Scope& scope, const Build& build) {
        return std::make_unique<Lambda>(options, scope, build);
      });
}

}  // namespace siamese::residual
