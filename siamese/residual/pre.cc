#include "siamese/residual/pre.h"

#include <ATen/ATen.h>

#include "siamese/residual/one_stream.h"
#include "siamese/residual/pass.h"

namespace siamese::residual {
namespace {

class PreJunction : public Junction {
 public:
  PreJunction(const nn::Scope& scope, const Site& at, const Build& build, double scale)
      : Junction(at), norm_(scope.child("norm"), build.width, build.branch_input_norm()), scale_(scale) {}

  ReadResult read(const Streams& streams, Recorder* recorder) const override {
    ops::Junction pass = pass_over_first(streams);
    pass.y_norm = norm_.step();
    pass.input_scale = scale_;
    const ops::JunctionResult made = ops::junction(pass);
    if (recorder != nullptr) record(recorder, "h", made.y, made.input / scale_);
    return {with_first(streams, made.y), made.input};
  }

  Streams write(const Streams& streams, const Branch& branch) const override {
    return deferring_to_first(streams, branch);
  }

 private:
  nn::Norm norm_;
  double scale_;
};

class Pre : public OneStream {
 public:
  using OneStream::OneStream;
  std::unique_ptr<Junction> junction(const nn::Scope& scope, const Site& site) const override {
    return pre_junction(scope, site, build());
  }
};

}  // namespace

std::unique_ptr<Junction> pre_junction(const nn::Scope& scope, const Site& site, const Build& build, double scale) {
  return std::make_unique<PreJunction>(scope, site, build, scale);
}

Scheme pre_scheme() {
  return define_scheme<NoOptions>(
      {.name = "pre",
       .equation = "h <- h + G(LN(h));  out = LN(h)",
       .paper = "Pre-Norm, arXiv 2002.04745",
       .full = R"(h_0 = E
h  <- h + G_i( LN_i(h) )
output = LN_final(h))"},
      [](const NoOptions&, const nn::Scope& scope, const Build& build) { return std::make_unique<Pre>(scope, build); });
}

}  // namespace siamese::residual
