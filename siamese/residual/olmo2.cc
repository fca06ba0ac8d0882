#include "siamese/residual/olmo2.h"

#include "siamese/residual/one_stream.h"
#include "siamese/residual/pass.h"

namespace siamese::residual {
namespace {

class Olmo2Junction : public Junction {
 public:
  Olmo2Junction(const nn::Scope& scope, const Site& at, const Build& build)
      : Junction(at), output_norm_(scope.child("output_norm"), build.width, build.norm) {}

  ReadResult read(const Streams& streams, Recorder* recorder) const override {
    const ops::JunctionResult made = ops::junction(pass_over(streams));
    record(recorder, "h", made.y, {});
    return {streams.replaced({made.y}), made.input};
  }

  Streams write(const Streams& streams, const Branch& branch) const override {
    return streams.deferring({branch, {1.0}, output_norm_.step()});
  }

 private:
  nn::Norm output_norm_;
};

class Olmo2 : public OneStream {
 public:
  using OneStream::OneStream;
  std::unique_ptr<Junction> junction(const nn::Scope& scope, const Site& site) const override {
    return std::make_unique<Olmo2Junction>(scope, site, build());
  }
  nn::AttentionNorm attention_norm(const Site&) const override { return nn::AttentionNorm::qk_full; }
};

}  // namespace

Scheme olmo2_scheme() {
  return define_scheme<NoOptions>({.name = "olmo2",
                                   .equation = "h <- h + LN(G(h));  out = LN(h);  QK-norm over the full width",
                                   .paper = "OLMo 2, arXiv 2501.00656",
                                   .full = R"(h_0 = E
h  <- h + LN_i( G_i(h) )
output = LN_final(h)
attention: RMSNorm over the whole of q and of k, before they are split into heads)"},
                                  [](const NoOptions&, const nn::Scope& scope, const Build& build) {
                                    return std::make_unique<Olmo2>(scope, build);
                                  });
}

}  // namespace siamese::residual
