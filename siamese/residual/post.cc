#include "siamese/residual/post.h"

#include <ATen/ATen.h>

namespace siamese::residual {
namespace {

// The norm belongs to the writer: nothing is left pending.
class PostJunction : public Junction {
 public:
  PostJunction(const nn::Scope& scope, const Site& at, const Build& build)
      : Junction(at), norm_(scope.child("norm"), build.width, build.norm) {}

  ReadResult read(const Streams& streams, Recorder* recorder) const override {
    Streams now = flush(streams);
    record(recorder, "h", now[0], {});
    at::Tensor input = now[0];
    return {std::move(now), std::move(input)};
  }

  Streams write(const Streams& streams, const Branch& branch) const override {
    const Streams sum = flush(streams.deferring({branch, {1.0}}));
    return sum.replaced({norm_(sum[0])});
  }

 private:
  nn::Norm norm_;
};

class PostTopology : public Topology {
 public:
  PostTopology(const PostOptions& options, const nn::Scope& scope, const Build& build) : build_(build) {
    if (options.final_norm && !build.modulated) final_norm_ = nn::Norm(scope.child("norm"), build.width, build.norm);
  }

  Streams open(const at::Tensor& embedding) const override { return {{{"h", embedding}}, {}, {}}; }
  std::unique_ptr<Junction> junction(const nn::Scope& scope, const Site& site) const override {
    return std::make_unique<PostJunction>(scope, site, build_);
  }
  at::Tensor close(const Streams& streams) const override { return final_norm_(flush(streams)[0]); }

 private:
  Build build_;
  nn::Norm final_norm_;
};

}  // namespace

Scheme post_scheme() {
  return define_scheme<PostOptions>({"post", "x <- LN(x + G(x));  out = LN(x)", "Post-Norm, arXiv 1706.03762"},
                                    [](const PostOptions& options, const nn::Scope& scope, const Build& build) {
                                      return std::make_unique<PostTopology>(options, scope, build);
                                    });
}

}  // namespace siamese::residual
