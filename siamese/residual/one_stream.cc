#include "siamese/residual/one_stream.h"

namespace siamese::residual {

OneStream::OneStream(const nn::Scope& scope, const Build& build, const EndNorms& norms) : build_(build) {
  if (norms.embedding) embedding_norm_ = nn::Norm(scope.child("open").child("norm"), build.width, build.norm);
  if (norms.final && !build.modulated) {
    final_norm_ = nn::Norm(scope.child("close").child("norm"), build.width, build.norm);
  }
}

}  // namespace siamese::residual
