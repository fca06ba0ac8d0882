// A mixture of experts token by token, as its equations say (ops/route.h, ops/expert_feed_forward.h): what the tests of
// the ops and of the layer compare with. Any dtype, with autograd.
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include <ATen/ATen.h>

#include "siamese/ops/activation.h"

namespace siamese::testing {

struct TokenRouting {
  std::vector<std::vector<int64_t>> chosen;
  std::vector<std::vector<at::Tensor>> weights;
  at::Tensor balance;
  at::Tensor z;
  std::vector<int64_t> counts;
};

inline TokenRouting route_by_token(const at::Tensor& logits, int64_t k, bool renormalise) {
  const int64_t rows = logits.size(0);
  const int64_t experts = logits.size(1);
  TokenRouting result;
  result.counts.assign(static_cast<size_t>(experts), 0);
  std::vector<at::Tensor> mean(static_cast<size_t>(experts), at::zeros({}, logits.options()));
  result.z = at::zeros({}, logits.options());
  for (int64_t t = 0; t < rows; ++t) {
    const at::Tensor sum = logits[t].exp().sum();
    const at::Tensor p = logits[t].exp() / sum;
    result.z = result.z + sum.log() * sum.log() / rows;
    std::vector<int64_t> order(static_cast<size_t>(experts));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return p[a].item<double>() > p[b].item<double>(); });
    order.resize(static_cast<size_t>(k));
    at::Tensor total = at::zeros({}, logits.options());
    for (const int64_t e : order) total = total + p[e];
    std::vector<at::Tensor> weights;
    for (const int64_t e : order) {
      weights.push_back(renormalise ? p[e] / total : p[e]);
      ++result.counts[static_cast<size_t>(e)];
    }
    for (int64_t e = 0; e < experts; ++e) {
      at::Tensor& of_expert = mean[static_cast<size_t>(e)];
      of_expert = of_expert + p[e] / rows;
    }
    result.chosen.push_back(order);
    result.weights.push_back(weights);
  }
  result.balance = at::zeros({}, logits.options());
  for (size_t e = 0; e < mean.size(); ++e) {
    const double share = double(result.counts[e]) / double(rows * k);
    result.balance = result.balance + double(experts) * share * mean[e];
  }
  return result;
}

inline at::Tensor activate_by_formula(ops::Activation kind, const at::Tensor& u) {
  if (kind == ops::Activation::swiglu) {
    const int64_t half = u.size(0) / 2;
    const at::Tensor gate = u.slice(0, half, 2 * half);
    return gate / (1 + (-gate).exp()) * u.slice(0, 0, half);
  }
  if (kind == ops::Activation::gelu) return u * 0.5 * (1 + (u / std::sqrt(2.0)).erf());
  return 0.5 * u * (1 + (std::sqrt(2 / M_PI) * (u + 0.044715 * u * u * u)).tanh());
}

inline at::Tensor experts_by_token(ops::Activation kind, const at::Tensor& x,
                                   const std::vector<std::vector<int64_t>>& chosen,
                                   const std::vector<std::vector<at::Tensor>>& weights, const at::Tensor& w_in,
                                   const at::Tensor& w_out) {
  std::vector<at::Tensor> rows;
  for (int64_t t = 0; t < x.size(0); ++t) {
    at::Tensor sum = at::zeros_like(x[t]);
    for (size_t r = 0; r < chosen[static_cast<size_t>(t)].size(); ++r) {
      const int64_t e = chosen[static_cast<size_t>(t)][r];
      const at::Tensor active = activate_by_formula(kind, w_in[e].mv(x[t]));
      sum = sum + weights[static_cast<size_t>(t)][r] * w_out[e].mv(active);
    }
    rows.push_back(sum);
  }
  return at::stack(rows);
}

}  // namespace siamese::testing
