#include "siamese/residual/one_stream.h"

#include "siamese/residual/pass.h"

namespace siamese::residual {

OneStream::OneStream(const nn::Scope& scope, const Build& build, const EndNorms& norms) : build_(build) {
  if (norms.embedding) embedding_norm_ = nn::Norm(scope.child("open").child("norm"), build.width, build.norm);
  if (norms.final && !build.modulated) {
    final_norm_ = nn::Norm(scope.child("close").child("norm"), build.width, build.norm);
  }
}

at::Tensor OneStream::close(const Streams& streams) const {
  ops::Junction pass = pass_over(streams);
  pass.y_norm = final_norm_.step();
  return ops::junction(pass).input;
}

at::Tensor OneStream::lens(const Streams& streams, std::optional<size_t> only) const {
  const Streams now = flush(streams);
  return only.value_or(0) == 0 ? final_norm_(now[0]) : at::Tensor();
}

}  // namespace siamese::residual
