#include "siamese/residual/peri.h"

#include "siamese/residual/one_stream.h"
#include "siamese/residual/pass.h"

namespace siamese::residual {
namespace {

class PeriJunction : public Junction {
 public:
  PeriJunction(const nn::Scope& scope, const Site& at, const Build& build)
      : Junction(at),
        input_norm_(scope.child("input_norm"), build.width, build.branch_input_norm()),
        output_norm_(scope.child("output_norm"), build.width, build.norm) {}

  ReadResult read(const Streams& streams, Recorder* recorder) const override {
    ops::Junction pass = pass_over(streams);
    pass.y_norm = input_norm_.step();
    const ops::JunctionResult made = ops::junction(pass);
    record(recorder, "h", made.y, made.input);
    return {streams.replaced({made.y}), made.input};
  }

  Streams write(const Streams& streams, const Branch& branch) const override {
    return streams.deferring({branch, {1.0}, output_norm_.step()});
  }

 private:
  nn::Norm input_norm_;
  nn::Norm output_norm_;
};

class Peri : public OneStream {
 public:
  Peri(const PeriOptions& options, const nn::Scope& scope, const Build& build)
      : OneStream(scope, build, {.embedding = options.embed_norm}) {}
  std::unique_ptr<Junction> junction(const nn::Scope& scope, const Site& site) const override {
    return peri_junction(scope, site, build());
  }
};

}  // namespace

std::unique_ptr<Junction> peri_junction(const nn::Scope& scope, const Site& site, const Build& build) {
  return std::make_unique<PeriJunction>(scope, site, build);
}

Scheme peri_scheme() {
  return define_scheme<PeriOptions>({.name = "peri",
                                     .equation = "h_0 = LN(E);  h <- h + LN(G(LN(h)));  out = LN(h)",
                                     .paper = "Peri-LN, arXiv 2502.02732",
                                     .full = R"(h_0 = LN_emb(E)                            (embed_norm=false: E)
h  <- h + LN_out,i( G_i( LN_in,i(h) ) )
output = LN_final(h))"},
                                    [](const PeriOptions& options, const nn::Scope& scope, const Build& build) {
                                      return std::make_unique<Peri>(options, scope, build);
                                    });
}

}  // namespace siamese::residual
