// A junction in plain double loops, norm by norm: what siamese/kernels/junction.h must compute, to float rounding.
// Backward by hand-written norm backward steps over whole rows, in the order of the equation.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace siamese::kernels::reference {

using Row = std::vector<double>;

struct Norm {
  bool present = false;
  bool layer = false;
  double eps = 0;
  Row gain;  // of width cols
  Row bias;
};

struct NormState {
  Row normed;
  double rstd = 1;
};

inline Row norm_forward(const Norm& norm, const Row& v, NormState& state) {
  if (!norm.present) return v;
  const auto count = static_cast<double>(v.size());
  double mean = 0;
  if (norm.layer) {
    for (const double value : v) mean += value / count;
  }
  double variance = 0;
  for (const double value : v) variance += (value - mean) * (value - mean) / count;
  state.rstd = 1 / std::sqrt(variance + norm.eps);
  Row y;
  for (size_t i = 0; i < v.size(); ++i) {
    state.normed.push_back((v[i] - mean) * state.rstd);
    y.push_back(state.normed[i] * norm.gain[i] + norm.bias[i]);
  }
  return y;
}

// Adds to dgain and dbias.
inline Row norm_backward(const Norm& norm, const NormState& state, const Row& dy, Row& dgain, Row& dbias) {
  if (!norm.present) return dy;
  const auto count = static_cast<double>(dy.size());
  double mean_g = 0;
  double mean_product = 0;
  for (size_t i = 0; i < dy.size(); ++i) {
    const double g = dy[i] * norm.gain[i];
    mean_g += norm.layer ? g / count : 0;
    mean_product += g * state.normed[i] / count;
    dgain[i] += dy[i] * state.normed[i];
    dbias[i] += dy[i];
  }
  Row dx;
  for (size_t i = 0; i < dy.size(); ++i) {
    dx.push_back(state.rstd * (dy[i] * norm.gain[i] - mean_g - state.normed[i] * mean_product));
  }
  return dx;
}

struct JunctionRow {
  bool two_streams = false;
  bool has_branch = false;
  double x_branch = 0;
  double y_branch = 0;
  double y_skip = 1;
  double input_scale = 1;
  Row x_scale;  // ones when absent
  Norm branch_norm, x_norm, y_norm, input_norm;
};

struct JunctionState {
  NormState branch, x, y, input;
  Row x_sum, y_sum, x_out, result;
};

inline JunctionState forward(const JunctionRow& j, const Row& z, const Row& x, const Row& y) {
  JunctionState s;
  const Row b = j.has_branch ? norm_forward(j.branch_norm, z, s.branch) : Row(y.size(), 0.0);
  for (size_t i = 0; i < y.size(); ++i) {
    if (j.two_streams) s.x_sum.push_back(x[i] + j.x_branch * b[i]);
    s.y_sum.push_back(j.y_skip * y[i] + j.y_branch * b[i]);
  }
  if (j.two_streams) s.x_out = norm_forward(j.x_norm, s.x_sum, s.x);
  Row m = norm_forward(j.y_norm, s.y_sum, s.y);
  for (size_t i = 0; j.two_streams && i < y.size(); ++i) m[i] += j.x_scale[i] * s.x_out[i];
  s.result = norm_forward(j.input_norm, m, s.input);
  for (double& value : s.result) value *= j.input_scale;
  return s;
}

struct JunctionRowGradients {
  Row z, x, y;                                            // overwritten
  Row x_scale, branch_gain, branch_bias, x_gain, x_bias;  // added to
  Row y_gain, y_bias, input_gain, input_bias;             // added to
};

inline void backward(const JunctionRow& j, const JunctionState& s, const Row& d_x_out, const Row& d_y_sum, Row du,
                     JunctionRowGradients& g) {
  for (double& value : du) value *= j.input_scale;
  const Row dm = norm_backward(j.input_norm, s.input, du, g.input_gain, g.input_bias);
  Row dv = norm_backward(j.y_norm, s.y, dm, g.y_gain, g.y_bias);
  Row db(du.size(), 0.0);
  for (size_t i = 0; i < dv.size(); ++i) dv[i] += d_y_sum[i];
  if (j.two_streams) {
    Row dx;
    for (size_t i = 0; i < dm.size(); ++i) {
      dx.push_back(j.x_scale[i] * dm[i] + d_x_out[i]);
      g.x_scale[i] += dm[i] * s.x_out[i];
    }
    g.x = norm_backward(j.x_norm, s.x, dx, g.x_gain, g.x_bias);
    for (size_t i = 0; i < db.size(); ++i) db[i] += j.x_branch * g.x[i];
  }
  g.y.clear();
  for (size_t i = 0; i < dv.size(); ++i) {
    g.y.push_back(j.y_skip * dv[i]);
    db[i] += j.y_branch * dv[i];
  }
  if (j.has_branch) g.z = norm_backward(j.branch_norm, s.branch, db, g.branch_gain, g.branch_bias);
}

}  // namespace siamese::kernels::reference
