// Schemes by a text that says all about them: "siamese(x=hybrid)|512|12|rms|1e-05|0.5|0|0" is scheme, width, blocks,
// norm, eps, alpha of an element-wise norm, bias, modulated. A compiled graph that holds such a text means the same in
// any process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "siamese/residual/functional.h"

namespace siamese::python {

std::string scheme_key(const std::string& scheme, const residual::Build& build);

struct KnownScheme {
  KnownScheme(const std::string& scheme, const residual::Build& build);

  residual::FunctionalScheme functional;
  int64_t width;
  int64_t blocks;

  // The list of both ends that `functional` takes, from the parameters of the one that is `wanted` ("open.", "close.");
  // nothing reads the others. UsageError when there are not as many.
  std::vector<at::Tensor> ends(const std::string& wanted, const std::vector<at::Tensor>& given) const;

 private:
  std::vector<at::Tensor> shapes_;  // of all end parameters, on the meta device
};

// Built at its first use and kept. UsageError for a text that is no key.
std::shared_ptr<const KnownScheme> known_scheme(const std::string& key);

}  // namespace siamese::python
