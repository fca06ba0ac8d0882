#include "siamese/eval/site_gradients.h"

#include <string>

namespace siamese::eval {

std::vector<at::Tensor> site_gradients(const nn::Parameters& parameters, const residual::Site& site) {
  const std::string prefix = "blocks." + std::to_string(site.block) + "." + std::string(enum_text(site.kind));
  std::vector<at::Tensor> gradients;
  for (const auto& parameter : parameters.list()) {
    const at::Tensor& gradient = parameter.value.grad();
    if (parameter.name.starts_with(prefix) && gradient.defined()) gradients.push_back(gradient);
  }
  return gradients;
}

}  // namespace siamese::eval
