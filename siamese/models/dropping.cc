#include "siamese/models/dropping.h"

#include <string>

#include "siamese/base/random.h"

namespace siamese::models {
namespace dropping_detail {

nn::Dropout at_place(const Dropping& pass, double chance, const char* place, int64_t index) {
  if (chance == 0) return {};
  const std::string name = "dropout." + std::string(place) + "." + std::to_string(index);
  return {chance, pass.seed ^ hash_text(name), pass.first_position};
}

}  // namespace dropping_detail

nn::Dropout Dropping::embedding() const { return dropping_detail::at_place(*this, chances.embedding, "embedding", 0); }

nn::Dropout Dropping::attention(const residual::Site& site) const {
  return dropping_detail::at_place(*this, chances.attention, "attention", site.index);
}

nn::Dropout Dropping::branch(const residual::Site& site) const {
  return dropping_detail::at_place(*this, chances.branch, "branch", site.index);
}

Dropping dropping_of(const ModelConfig& config, const Inputs& inputs, const LossOptions& options) {
  return {options.training ? config.dropout : DropoutConfig(), options.seed, inputs.first_position};
}

}  // namespace siamese::models
