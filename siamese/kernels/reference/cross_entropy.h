// kernels/cross_entropy.h in plain double loops.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace siamese::kernels::reference {

struct CrossEntropyRow {
  double nll = 0;
  double z = 0;
  std::vector<double> gradient;  // of nll_scale * nll + z_scale * z, times weight
};

inline CrossEntropyRow cross_entropy_row(const float* logits, int64_t vocab, int64_t target, double weight,
                                         double nll_scale, double z_scale) {
  const double top = *std::max_element(logits, logits + vocab);
  double sum = 0;
  for (int64_t i = 0; i < vocab; ++i) sum += std::exp(static_cast<double>(logits[i]) - top);
  const double normalizer = top + std::log(sum);
  CrossEntropyRow row{normalizer - static_cast<double>(logits[target]), normalizer * normalizer, {}};
  for (int64_t i = 0; i < vocab; ++i) {
    const double probability = std::exp(static_cast<double>(logits[i]) - normalizer);
    const double onehot = i == target ? 1 : 0;
    row.gradient.push_back(weight * (nll_scale * (probability - onehot) + 2 * z_scale * normalizer * probability));
  }
  return row;
}

}  // namespace siamese::kernels::reference
