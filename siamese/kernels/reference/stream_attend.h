// Attention over depth in plain double loops: what siamese/kernels/stream_attend.h must compute for a row, to float
// rounding.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "siamese/kernels/reference/junction.h"

namespace siamese::kernels::reference {

struct AttendedRow {
  Row query;
  double eps = 0;
  Norm norm;
};

struct AttendState {
  Row scores, scales, weights;
  NormState norm;
};

inline Row attend_forward(const AttendedRow& attend, const std::vector<Row>& v, AttendState& state) {
  const size_t cols = v[0].size();
  for (const Row& row : v) {
    double squares = 0;
    double product = 0;
    for (size_t c = 0; c < cols; ++c) {
      squares += row[c] * row[c];
      product += row[c] * attend.query[c];
    }
    state.scales.push_back(1 / std::sqrt(squares / static_cast<double>(cols) + attend.eps));
    state.scores.push_back(product * state.scales.back());
  }
  const double top = *std::max_element(state.scores.begin(), state.scores.end());
  double sum = 0;
  for (const double score : state.scores) sum += std::exp(score - top);
  for (const double score : state.scores) state.weights.push_back(std::exp(score - top) / sum);
  Row h(cols, 0.0);
  for (size_t j = 0; j < v.size(); ++j) {
    for (size_t c = 0; c < cols; ++c) h[c] += state.weights[j] * v[j][c];
  }
  return norm_forward(attend.norm, h, state.norm);
}

struct AttendGradients {
  std::vector<Row> streams;  // overwritten
  Row query, gain, bias;     // added to
};

// `through`: what comes back to each stream beside the input.
inline void attend_backward(const AttendedRow& attend, const AttendState& state, const std::vector<Row>& v,
                            const Row& d_input, const std::vector<Row>& through, AttendGradients& g) {
  const size_t cols = v[0].size();
  const Row d = norm_backward(attend.norm, state.norm, d_input, g.gain, g.bias);
  Row u(v.size(), 0.0);
  double mean = 0;
  for (size_t j = 0; j < v.size(); ++j) {
    for (size_t c = 0; c < cols; ++c) u[j] += d[c] * v[j][c];
    mean += state.weights[j] * u[j];
  }
  g.streams = through;
  for (size_t j = 0; j < v.size(); ++j) {
    const double e = state.weights[j] * (u[j] - mean);  // of the score
    const double r = state.scales[j];
    for (size_t c = 0; c < cols; ++c) {
      const double of_scale = state.scores[j] * r * r * v[j][c] / static_cast<double>(cols);
      g.streams[j][c] += state.weights[j] * d[c] + e * (r * attend.query[c] - of_scale);
      g.query[c] += e * r * v[j][c];
    }
  }
}

}  // namespace siamese::kernels::reference
