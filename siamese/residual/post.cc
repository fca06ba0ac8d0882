#include "siamese/residual/post.h"

#include "siamese/residual/one_stream.h"
#include "siamese/residual/pass.h"

namespace siamese::residual {
namespace {

// The norm belongs to the writer: nothing is left pending.
class PostJunction : public Junction {
 public:
  PostJunction(const nn::Scope& scope, const Site& at, const Build& build, double alpha)
      : Junction(at), norm_(scope.child("norm"), build.width, build.norm), alpha_(alpha) {}

  ReadResult read(const Streams& streams, Recorder* recorder) const override {
    Streams now = flush(streams);
    record(recorder, "h", now[0], {});
    at::Tensor input = now[0];
    return {std::move(now), std::move(input)};
  }

  Streams write(const Streams& streams, const Branch& branch) const override {
    return streams.replaced({norm_of_sum(norm_, streams[0], alpha_, branch)});
  }

 private:
  nn::Norm norm_;
  double alpha_;
};

class Post : public OneStream {
 public:
  Post(const PostOptions& options, const nn::Scope& scope, const Build& build)
      : OneStream(scope, build, {.final = options.final_norm}) {}
  std::unique_ptr<Junction> junction(const nn::Scope& scope, const Site& site) const override {
    return post_junction(scope, site, build());
  }
};

}  // namespace

std::unique_ptr<Junction> post_junction(const nn::Scope& scope, const Site& site, const Build& build, double alpha) {
  return std::make_unique<PostJunction>(scope, site, build, alpha);
}

Scheme post_scheme() {
  return define_scheme<PostOptions>({.name = "post",
                                     .equation = "x <- LN(x + G(x));  out = LN(x)",
                                     .paper = "Post-Norm, arXiv 1706.03762",
                                     .full = R"(x_0 = E
x  <- LN_i( x + G_i(x) )
output = LN_final(x)                          (final_norm=false: x))"},
                                    [](const PostOptions& options, const nn::Scope& scope, const Build& build) {
                                      return std::make_unique<Post>(options, scope, build);
                                    });
}

}  // namespace siamese::residual
