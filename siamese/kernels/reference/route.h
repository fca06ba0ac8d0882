// The router in plain double loops: what siamese/kernels/route.h must compute, to float rounding. One row.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace siamese::kernels::reference {

struct RoutedRow {
  std::vector<double> p;
  double normalizer = 0;
  std::vector<int64_t> chosen;
  std::vector<double> weights;
};

inline RoutedRow route_row(const double* logits, int64_t experts, int64_t k, bool renormalise) {
  RoutedRow row;
  double sum = 0;
  for (int64_t e = 0; e < experts; ++e) sum += std::exp(logits[e]);
  for (int64_t e = 0; e < experts; ++e) row.p.push_back(std::exp(logits[e]) / sum);
  row.normalizer = std::log(sum);
  std::vector<bool> taken(static_cast<size_t>(experts));
  double total = 0;
  for (int64_t r = 0; r < k; ++r) {
    int64_t best = -1;
    for (int64_t e = 0; e < experts; ++e) {
      if (!taken[static_cast<size_t>(e)] && (best < 0 || logits[e] > logits[best])) best = e;
    }
    taken[static_cast<size_t>(best)] = true;
    row.chosen.push_back(best);
    row.weights.push_back(row.p[static_cast<size_t>(best)]);
    total += row.weights.back();
  }
  if (renormalise) {
    for (double& weight : row.weights) weight /= total;
  }
  return row;
}

// dweights . weights + dmean . p + dz n^2: what route_backward has the gradient of.
inline double routed_objective(const RoutedRow& row, const double* dweights, const double* dmean, double dz) {
  double sum = dz * row.normalizer * row.normalizer;
  for (size_t r = 0; r < row.weights.size(); ++r) sum += dweights[r] * row.weights[r];
  for (size_t e = 0; e < row.p.size(); ++e) sum += dmean[e] * row.p[e];
  return sum;
}

}  // namespace siamese::kernels::reference
