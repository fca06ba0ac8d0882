// Sinkhorn-Knopp in plain double loops: what siamese/kernels/sinkhorn.h must compute for a row, to float rounding. In
// the log domain too, so that large logits stay finite.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace siamese::kernels::reference {

using Matrix = std::vector<double>;  // n x n, by row

// Step t normalises columns when it is even, rows when it is odd; entry k of line l.
inline size_t sinkhorn_entry(int64_t t, int64_t n, int64_t l, int64_t k) {
  return static_cast<size_t>(t % 2 == 0 ? k * n + l : l * n + k);
}

// exp of the matrix after each of the 2 * iterations steps; the last is the result.
inline std::vector<Matrix> sinkhorn_forward(Matrix logs, int64_t n, int64_t iterations) {
  std::vector<Matrix> steps;
  for (int64_t t = 0; t < 2 * iterations; ++t) {
    for (int64_t l = 0; l < n; ++l) {
      double top = logs[sinkhorn_entry(t, n, l, 0)];
      for (int64_t k = 1; k < n; ++k) top = std::max(top, logs[sinkhorn_entry(t, n, l, k)]);
      double sum = 0;
      for (int64_t k = 0; k < n; ++k) sum += std::exp(logs[sinkhorn_entry(t, n, l, k)] - top);
      for (int64_t k = 0; k < n; ++k) logs[sinkhorn_entry(t, n, l, k)] -= top + std::log(sum);
    }
    steps.push_back(logs);
    for (double& value : steps.back()) value = std::exp(value);
  }
  return steps;
}

inline Matrix sinkhorn_backward(const std::vector<Matrix>& steps, Matrix gradient, int64_t n) {
  for (size_t e = 0; e < gradient.size(); ++e) gradient[e] *= steps.back()[e];
  for (auto t = static_cast<int64_t>(steps.size()) - 1; t >= 0; --t) {
    for (int64_t l = 0; l < n; ++l) {
      double sum = 0;
      for (int64_t k = 0; k < n; ++k) sum += gradient[sinkhorn_entry(t, n, l, k)];
      for (int64_t k = 0; k < n; ++k) {
        const size_t e = sinkhorn_entry(t, n, l, k);
        gradient[e] -= steps[static_cast<size_t>(t)][e] * sum;
      }
    }
  }
  return gradient;
}

}  // namespace siamese::kernels::reference
