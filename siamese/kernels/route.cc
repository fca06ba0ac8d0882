// Plain loops: a router has few experts, and its time is a hundredth of theirs.
#include "siamese/kernels/route.h"

#include <algorithm>
#include <cmath>

namespace siamese::kernels {
namespace {

// softmax into p; returns log sum exp.
double softmax(const float* logits, float* p, int64_t experts) {
  const float top = *std::max_element(logits, logits + experts);
  double sum = 0;
  for (int64_t e = 0; e < experts; ++e) {
    p[e] = std::exp(logits[e] - top);
    sum += static_cast<double>(p[e]);
  }
  const auto scale = static_cast<float>(1 / sum);
  for (int64_t e = 0; e < experts; ++e) p[e] *= scale;
  return static_cast<double>(top) + std::log(sum);
}

// The k largest in falling order by insertion; an equal one that comes later stays behind. Whatever is not a number
// stays where it was met: k different indices in any case.
void choose(const float* logits, int64_t experts, int64_t k, int64_t* chosen) {
  int64_t have = 0;
  for (int64_t e = 0; e < experts; ++e) {
    int64_t at = have;
    while (at > 0 && logits[e] > logits[chosen[at - 1]]) --at;
    if (at == k) continue;
    have = std::min(have + 1, k);
    for (int64_t r = have - 1; r > at; --r) chosen[r] = chosen[r - 1];
    chosen[at] = e;
  }
}

double sum_of_chosen(const float* p, const int64_t* chosen, int64_t k) {
  double sum = 0;
  for (int64_t r = 0; r < k; ++r) sum += static_cast<double>(p[chosen[r]]);
  return sum;
}

// dp of the chosen experts += the gradients of their weights.
void add_from_weights(const RouteShape& shape, const float* p, const int64_t* chosen, const float* dweights,
                      float* dp) {
  const double total = shape.renormalise ? sum_of_chosen(p, chosen, shape.per_row) : 1;
  double common = 0;
  if (shape.renormalise) {
    for (int64_t r = 0; r < shape.per_row; ++r) {
      common += static_cast<double>(dweights[r]) * static_cast<double>(p[chosen[r]]) / total;
    }
  }
  for (int64_t r = 0; r < shape.per_row; ++r) {
    dp[chosen[r]] += static_cast<float>((static_cast<double>(dweights[r]) - common) / total);
  }
}

}  // namespace

void route_forward(const RouteShape& shape, const float* logits, float* p, float* normalizer, int64_t* chosen,
                   float* weights, float* sums, int64_t begin, int64_t end) {
  const int64_t experts = shape.experts;
  const int64_t k = shape.per_row;
  for (int64_t row = begin; row < end; ++row) {
    float* const row_p = p + row * experts;
    int64_t* const row_chosen = chosen + row * k;
    normalizer[row] = static_cast<float>(softmax(logits + row * experts, row_p, experts));
    for (int64_t e = 0; e < experts; ++e) sums[e] += row_p[e];
    choose(logits + row * experts, experts, k, row_chosen);
    const double total = shape.renormalise ? sum_of_chosen(row_p, row_chosen, k) : 1;
    for (int64_t r = 0; r < k; ++r) {
      weights[row * k + r] = static_cast<float>(static_cast<double>(row_p[row_chosen[r]]) / total);
    }
  }
}

void route_backward(const RouteShape& shape, const float* p, const float* normalizer, const int64_t* chosen,
                    const float* dweights, const float* dmean, double dz, float* dlogits, int64_t begin, int64_t end) {
  const int64_t experts = shape.experts;
  for (int64_t row = begin; row < end; ++row) {
    const float* const row_p = p + row * experts;
    float* const dp = dlogits + row * experts;
    std::copy(dmean, dmean + experts, dp);
    if (dweights != nullptr) {
      add_from_weights(shape, row_p, chosen + row * shape.per_row, dweights + row * shape.per_row, dp);
    }
    double mean = 0;
    for (int64_t e = 0; e < experts; ++e) mean += static_cast<double>(row_p[e]) * static_cast<double>(dp[e]);
    const double shift = 2 * dz * static_cast<double>(normalizer[row]) - mean;
    for (int64_t e = 0; e < experts; ++e) {
      dp[e] = static_cast<float>(static_cast<double>(row_p[e]) * (static_cast<double>(dp[e]) + shift));
    }
  }
}

}  // namespace siamese::kernels
