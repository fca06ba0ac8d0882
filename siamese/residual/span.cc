#include "siamese/residual/span.h"

#include "siamese/residual/keel.h"
#include "siamese/residual/one_stream.h"
#include "siamese/residual/pass.h"

namespace siamese::residual {
namespace {

enum { kBlockInput, kInner };  // streams between attention and FFN: h (x) and y

class SpanAttention : public Junction {
 public:
  SpanAttention(const nn::Scope& scope, const Site& at, const Build& build)
      : Junction(at), norm_(scope.child("norm"), build.width, build.norm) {
    if (at.block == 0) first_norm_ = nn::Norm(scope.child("input_norm"), build.width, build.branch_input_norm());
  }

  ReadResult read(const Streams& streams, Recorder* recorder) const override {
    Streams now = flush(streams);
    at::Tensor input = input_of_first(first_norm_, now);
    record(recorder, "h", now[0], site().block == 0 ? input : at::Tensor());
    return {std::move(now), std::move(input)};
  }

  Streams write(const Streams& streams, const Branch& branch) const override {
    return {{{"h", streams[0]}, {"y", norm_of_sum(norm_, streams[0], 1, branch)}}, {}, {}};
  }

 private:
  nn::Norm norm_;
  nn::Norm first_norm_;  // block 0 only
};

class SpanFeedForward : public Junction {
 public:
  SpanFeedForward(const nn::Scope& scope, const Site& at, const Build& build)
      : Junction(at), norm_(scope.child("norm"), build.width, build.norm) {}

  ReadResult read(const Streams& streams, Recorder* recorder) const override {
    record(recorder, "h", streams[kBlockInput], {});
    record(recorder, "y", streams[kInner], {});
    return {streams, streams[kInner]};
  }

  Streams write(const Streams& streams, const Branch& branch) const override {
    return {{{"h", norm_of_sum(norm_, streams[kBlockInput], 1, branch)}}, {}, {}};
  }

 private:
  nn::Norm norm_;
};

class Span : public OneStream {
 public:
  Span(const SpanOptions& options, const nn::Scope& scope, const Build& build)
      : OneStream(scope, build, {.final = options.final_norm}), options_(options) {}
  std::unique_ptr<Junction> junction(const nn::Scope& scope, const Site& site) const override {
    if (options_.reading == SpanReading::c) return keel_junction(scope, site, build(), 1);
    if (site.kind == SiteKind::attention) return std::make_unique<SpanAttention>(scope, site, build());
    return std::make_unique<SpanFeedForward>(scope, site, build());
  }
  BranchInit branch_init(const Site&) const override { return {.output = options_.output_init}; }

 private:
  SpanOptions options_;
};

}  // namespace

void SpanOptions::check() const { check_factor("span.output_init", output_init); }

Scheme span_scheme() {
  return define_scheme<SpanOptions>({.name = "span",
                                     .equation = "y = LN(x + A(x));  x <- LN(x + F(y));  out = x",
                                     .paper = "SpanNorm, arXiv 2601.22580",
                                     .full = R"(x_0 = E
u   = x                                       (block 0: LN_0(x))
y   = LN_a,l( x + A_l(u) )
x  <- LN_f,l( x + F_l(y) )                    the skip is the block's input
output = x                                    (final_norm=true: LN_final(x))
reading=c:  x <- LN_i( x + G_i( LN_in,i(x) ) ))"},
                                    [](const SpanOptions& options, const nn::Scope& scope, const Build& build) {
                                      return std::make_unique<Span>(options, scope, build);
                                    });
}

}  // namespace siamese::residual
