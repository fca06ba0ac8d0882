#include "siamese/residual/keel.h"

#include "siamese/residual/one_stream.h"
#include "siamese/residual/pass.h"
#include "siamese/residual/pre.h"

namespace siamese::residual {
namespace {

class KeelJunction : public Junction {
 public:
  KeelJunction(const nn::Scope& scope, const Site& at, const Build& build, double alpha)
      : Junction(at),
        input_norm_(scope.child("input_norm"), build.width, build.branch_input_norm()),
        norm_(scope.child("norm"), build.width, build.norm),
        alpha_(alpha) {}

  ReadResult read(const Streams& streams, Recorder* recorder) const override {
    Streams now = flush(streams);
    at::Tensor input = input_of_first(input_norm_, now);
    record(recorder, "h", now[0], input);
    return {std::move(now), std::move(input)};
  }

  Streams write(const Streams& streams, const Branch& branch) const override {
    return streams.replaced({norm_of_sum(norm_, streams[0], alpha_, branch)});
  }

 private:
  nn::Norm input_norm_;
  nn::Norm norm_;
  double alpha_;
};

class Keel : public OneStream {
 public:
  Keel(const KeelOptions& options, const nn::Scope& scope, const Build& build)
      : OneStream(scope, build), options_(options) {}
  std::string_view lost_without_true_norm() const override { return "nothing divides its factor 2L out again"; }
  std::unique_ptr<Junction> junction(const nn::Scope& scope, const Site& site) const override {
    if (site.block > 0) return keel_junction(scope, site, build(), 2.0 * static_cast<double>(build().blocks));
    if (options_.variant == KeelVariant::b && site.kind == SiteKind::ffn) return keel_junction(scope, site, build(), 1);
    return pre_junction(scope, site, build());
  }

 private:
  KeelOptions options_;
};

}  // namespace

std::unique_ptr<Junction> keel_junction(const nn::Scope& scope, const Site& site, const Build& build, double alpha) {
  return std::make_unique<KeelJunction>(scope, site, build, alpha);
}

Scheme keel_scheme() {
  return define_scheme<KeelOptions>({.name = "keel",
                                     .equation = "x <- LN(2L x + G(LN(x))), block 0: x <- x + G(LN(x));  out = LN(x)",
                                     .paper = "Keel, arXiv 2601.19895",
                                     .full = R"(x_0 = E
x  <- x + G_i( LN_i(x) )                      block 0   (variant=b: its FFN  x <- LN_1( x + F_0( LN_in,1(x) ) ))
x  <- LN_i( alpha x + G_i( LN_in,i(x) ) )     the others, alpha = 2L, L = blocks
output = LN_final(x))"},
                                    [](const KeelOptions& options, const nn::Scope& scope, const Build& build) {
                                      return std::make_unique<Keel>(options, scope, build);
                                    });
}

}  // namespace siamese::residual
