// A mix of streams in plain double loops: what siamese/kernels/stream_mix.h must compute for a row, to float rounding.
#pragma once

#include <cstddef>
#include <vector>

#include "siamese/kernels/reference/junction.h"

namespace siamese::kernels::reference {

struct MixedRow {
  std::vector<Row> matrix;  // M[j][i]
  Row branch_weights;       // b[j]; empty: no branch
  Norm norm;                // of the only output
};

inline std::vector<Row> mix_forward(const MixedRow& mix, const std::vector<Row>& s, const Row& z, NormState& state) {
  std::vector<Row> out;
  for (size_t j = 0; j < mix.matrix.size(); ++j) {
    Row row(s[0].size(), 0.0);
    for (size_t c = 0; c < row.size(); ++c) {
      for (size_t i = 0; i < s.size(); ++i) row[c] += mix.matrix[j][i] * s[i][c];
      if (!mix.branch_weights.empty()) row[c] += mix.branch_weights[j] * z[c];
    }
    out.push_back(norm_forward(mix.norm, row, state));
  }
  return out;
}

struct MixedRowGradients {
  std::vector<Row> streams;  // overwritten, as all but gain and bias
  Row branch;
  std::vector<Row> matrix;
  Row branch_weights;
  Row gain, bias;  // added to
};

inline double dot(const Row& a, const Row& b) {
  double sum = 0;
  for (size_t c = 0; c < a.size(); ++c) sum += a[c] * b[c];
  return sum;
}

// `through`: what comes back to each stream beside the outputs.
inline void mix_backward(const MixedRow& mix, const NormState& state, const std::vector<Row>& s, const Row& z,
                         const std::vector<Row>& d_outputs, const std::vector<Row>& through, MixedRowGradients& g) {
  g.streams = through;
  g.branch.assign(z.size(), 0.0);
  g.matrix.assign(mix.matrix.size(), Row(s.size(), 0.0));
  g.branch_weights.assign(mix.branch_weights.size(), 0.0);
  for (size_t j = 0; j < mix.matrix.size(); ++j) {
    const Row d = norm_backward(mix.norm, state, d_outputs[j], g.gain, g.bias);
    for (size_t i = 0; i < s.size(); ++i) {
      g.matrix[j][i] = dot(d, s[i]);
      for (size_t c = 0; c < d.size(); ++c) g.streams[i][c] += mix.matrix[j][i] * d[c];
    }
    if (mix.branch_weights.empty()) continue;
    g.branch_weights[j] = dot(d, z);
    for (size_t c = 0; c < d.size(); ++c) g.branch[c] += mix.branch_weights[j] * d[c];
  }
}

}  // namespace siamese::kernels::reference
