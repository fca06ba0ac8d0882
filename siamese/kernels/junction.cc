#include "siamese/kernels/junction.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "siamese/kernels/junction.cc"
#include "hwy/foreach_target.h"

#include "hwy/cache_control.h"
#include "hwy/highway.h"

#include "siamese/kernels/row_steps-inl.h"

HWY_BEFORE_NAMESPACE();
namespace siamese::kernels::HWY_NAMESPACE {

// What the next row will read first is fetched while this one is computed: memory and arithmetic take turns otherwise.
// Past the last row this asks for what is never used, which is harmless.
template <size_t kCount>
HWY_INLINE void prefetch_row(const float* const (&arrays)[kCount], int64_t at) {
  for (const float* const array : arrays) {
    if (array != nullptr) hwy::Prefetch(array + at);
  }
}

template <bool kLayer>
void forward_row(const Junction& junction, const JunctionRows& rows, int64_t row) {
  using NormAt = RowNormAt<kLayer>;
  const Floats d;
  const int64_t cols = junction.cols;
  const int64_t at = row * cols;
  NormAt branch_norm(junction.branch_norm, row);
  NormAt x_norm(junction.x_norm, row);
  NormAt y_norm(junction.y_norm, row);
  NormAt input_norm(junction.input_norm, row);
  const float* const branch = rows.branch == nullptr ? nullptr : rows.branch + at;

  const auto row_statistics = [&](NormAt& norm, const float* values) {
    norm.set_statistics(row_sums<kLayer>(cols, [&](int64_t i, auto access, FloatVector& a, FloatVector& b)
                                                   HWY_ATTR { a = b = access.load(d, values + i); }),
                        cols);
  };
  if (branch != nullptr && branch_norm.present()) row_statistics(branch_norm, branch);

  // sum = skip * stream + coefficient * b, with the statistics of its norm in the same loop.
  const auto add = [&](NormAt& norm, const float* stream, float skip, float coefficient, float* sum) {
    const auto skip_vector = hn::Set(d, skip);
    const auto coefficient_vector = hn::Set(d, coefficient);
    const auto produce = [&](int64_t i, auto access, FloatVector& a, FloatVector& b) HWY_ATTR {
      auto value = hn::Mul(access.load(d, stream + i), skip_vector);
      if (branch != nullptr) {
        auto z = access.load(d, branch + i);
        if (branch_norm.present()) z = branch_norm.affine(access, i, branch_norm.normalised(z));
        value = hn::MulAdd(z, coefficient_vector, value);
      }
      access.store(value, d, sum + i);
      a = b = access.zero_outside(d, value);
    };
    if (norm.present()) {
      norm.set_statistics(row_sums<kLayer>(cols, produce), cols);
    } else {
      for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR {
        FloatVector a;
        FloatVector b;
        produce(i, access, a, b);
      });
    }
  };

  const float* x_sum = nullptr;
  if (rows.x != nullptr) {
    x_sum = rows.x_sum == nullptr ? rows.x + at : rows.x_sum + at;
    if (rows.x_sum != nullptr) {
      add(x_norm, rows.x + at, 1, junction.x_branch, rows.x_sum + at);
    } else if (x_norm.present()) {
      row_statistics(x_norm, x_sum);
    }
  }
  const float* const y_sum = rows.y_sum == nullptr ? rows.y + at : rows.y_sum + at;
  if (rows.y_sum != nullptr) {
    add(y_norm, rows.y + at, junction.y_skip, junction.y_branch, rows.y_sum + at);
  } else if (y_norm.present()) {
    row_statistics(y_norm, y_sum);
  }
  if (rows.input == nullptr) return;

  float* const input = rows.input + at;
  float* const x_out = rows.x_out == nullptr ? nullptr : rows.x_out + at;
  const float* const x_scale = junction.x_scale;
  const auto scale = hn::Set(d, junction.input_scale);
  const auto merge = [&](int64_t i, auto access, FloatVector& a, FloatVector& b) HWY_ATTR {
    auto merged = access.load(d, y_sum + i);
    if (y_norm.present()) merged = y_norm.affine(access, i, y_norm.normalised(merged));
    if (x_sum != nullptr) {
      auto x = access.load(d, x_sum + i);
      if (x_norm.present()) {
        x = x_norm.affine(access, i, x_norm.normalised(x));
        access.store(x, d, x_out + i);
      }
      if (x_scale != nullptr) x = hn::Mul(x, access.load(d, x_scale + i));
      merged = hn::Add(x, merged);
    }
    a = b = access.zero_outside(d, merged);
    access.store(input_norm.present() ? merged : hn::Mul(merged, scale), d, input + i);
  };
  if (!input_norm.present()) {
    for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR {
      FloatVector a;
      FloatVector b;
      merge(i, access, a, b);
    });
    return;
  }
  input_norm.set_statistics(row_sums<kLayer>(cols, merge), cols);
  for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR {
    const auto normed = input_norm.normalised(access.load(d, input + i));
    access.store(hn::Mul(input_norm.affine(access, i, normed), scale), d, input + i);
  });
}

template <bool kLayer>
void backward_row(const Junction& junction, const JunctionGradients& g, int64_t row) {
  using NormAt = RowNormAt<kLayer>;
  const Floats d;
  const int64_t cols = junction.cols;
  const int64_t at = row * cols;
  const auto count = static_cast<double>(cols);
  NormAt branch_norm(junction.branch_norm, row);
  NormAt x_norm(junction.x_norm, row);
  NormAt y_norm(junction.y_norm, row);
  NormAt input_norm(junction.input_norm, row);
  for (NormAt* const norm : {&branch_norm, &x_norm, &y_norm, &input_norm}) norm->load_statistics();
  const float* const x_scale = junction.x_scale;
  float* const d_x_scale = g.d_x_scale;
  const RowNormGradient x_gradient = g.x_norm;
  const RowNormGradient y_gradient = g.y_norm;
  const RowNormGradient input_gradient = g.input_norm;
  const RowNormGradient branch_gradient = g.branch_norm;
  const float* const x_sum = g.x_sum == nullptr ? nullptr : g.x_sum + at;
  const float* const y_sum = g.y_sum + at;
  float* const first = g.scratch;
  float* const second = g.scratch + cols;
  float* const third = g.scratch + 2 * cols;
  const auto row_or_null = [&](auto* array) { return array == nullptr ? nullptr : array + at; };
  const float* const d_input = row_or_null(g.d_input);
  const float* const d_x_out = row_or_null(g.d_x_out);
  const float* const d_y_sum = row_or_null(g.d_y_sum);
  float* const d_x = row_or_null(g.d_x);
  float* const d_y = row_or_null(g.d_y);
  const auto load_or_zero = [&](auto access, const float* from, int64_t i)
                                HWY_ATTR { return from == nullptr ? hn::Zero(d) : access.load(d, from + i); };
  const auto mean = [&](double sum) { return static_cast<float>(sum / count); };
  const auto scale = hn::Set(d, junction.input_scale);

  // X before its scale, and m.
  const auto x_value = [&](auto access, int64_t i) HWY_ATTR {
    const auto value = access.load(d, x_sum + i);
    return x_norm.present() ? x_norm.affine(access, i, x_norm.normalised(value)) : value;
  };
  const auto merged = [&](auto access, int64_t i) HWY_ATTR {
    auto value = access.load(d, y_sum + i);
    if (y_norm.present()) value = y_norm.affine(access, i, y_norm.normalised(value));
    if (x_sum == nullptr) return value;
    auto x = x_value(access, i);
    if (x_scale != nullptr) x = hn::Mul(x, access.load(d, x_scale + i));
    return hn::Add(x, value);
  };

  // 1. dm in `first`.
  if (input_norm.present()) {
    const TwoSums sums = row_sums<kLayer>(cols, [&](int64_t i, auto access, FloatVector& a, FloatVector& b) HWY_ATTR {
      const auto du = hn::Mul(load_or_zero(access, d_input, i), scale);
      const auto normed = access.zero_outside(d, input_norm.normalised(merged(access, i)));
      input_norm.add_gradient(access, i, du, normed, input_gradient);
      access.store(normed, d, second + i);
      a = input_norm.gained(access, i, du);
      b = normed;
      access.store(a, d, first + i);
    });
    for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR {
      access.store(input_norm.input_gradient(access.load(d, first + i), access.load(d, second + i), mean(sums.first),
                                             mean(sums.second)),
                   d, first + i);
    });
  } else {
    for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR {
      access.store(hn::Mul(load_or_zero(access, d_input, i), scale), d, first + i);
    });
  }

  // 2. dX gain in `second` (without x_norm: dU), and the sums of P.
  TwoSums x_sums{};
  if (x_sum != nullptr) {
    const auto back = [&](int64_t i, auto access, FloatVector& a, FloatVector& b) HWY_ATTR {
      auto dx = access.load(d, first + i);
      if (x_scale != nullptr) {
        if (d_x_scale != nullptr) {
          access.store(hn::MulAdd(dx, x_value(access, i), access.load(d, d_x_scale + i)), d, d_x_scale + i);
        }
        dx = hn::Mul(dx, access.load(d, x_scale + i));
      }
      dx = hn::Add(dx, load_or_zero(access, d_x_out, i));
      b = hn::Zero(d);
      if (x_norm.present()) {
        b = access.zero_outside(d, x_norm.normalised(access.load(d, x_sum + i)));
        x_norm.add_gradient(access, i, dx, b, x_gradient);
        dx = x_norm.gained(access, i, dx);
      }
      a = dx;
      access.store(dx, d, second + i);
    };
    x_sums = row_sums<kLayer>(cols, back);
  }
  TwoSums y_sums{};
  if (y_norm.present()) {
    y_sums = row_sums<kLayer>(cols, [&](int64_t i, auto access, FloatVector& a, FloatVector& b) HWY_ATTR {
      const auto dq = access.load(d, first + i);
      b = access.zero_outside(d, y_norm.normalised(access.load(d, y_sum + i)));
      y_norm.add_gradient(access, i, dq, b, y_gradient);
      a = y_norm.gained(access, i, dq);
      access.store(a, d, first + i);
    });
  }

  // 3. dU, dV and what they give to the streams and to b (in `third` when R is still to come).
  const auto x_branch = hn::Set(d, junction.x_branch);
  const auto y_branch = hn::Set(d, junction.y_branch);
  const auto y_skip = hn::Set(d, junction.y_skip);
  float* const d_branch = g.d_branch == nullptr ? nullptr : branch_norm.present() ? third : g.d_branch + at;
  const float* const next[] = {g.x_sum, g.y_sum, g.d_x_out, g.d_y_sum, g.d_input};
  for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR {
    prefetch_row(next, at + cols + i);
    auto db = hn::Zero(d);
    if (x_sum != nullptr) {
      auto du = access.load(d, second + i);
      if (x_norm.present()) {
        const auto normed = x_norm.normalised(access.load(d, x_sum + i));
        du = x_norm.input_gradient(du, normed, mean(x_sums.first), mean(x_sums.second));
      }
      if (d_x != nullptr) access.store(du, d, d_x + i);
      db = hn::Mul(du, x_branch);
    }
    auto dv = access.load(d, first + i);
    if (y_norm.present()) {
      const auto normed = y_norm.normalised(access.load(d, y_sum + i));
      dv = y_norm.input_gradient(dv, normed, mean(y_sums.first), mean(y_sums.second));
    }
    dv = hn::Add(dv, load_or_zero(access, d_y_sum, i));
    if (d_y != nullptr) access.store(hn::Mul(dv, y_skip), d, d_y + i);
    if (d_branch != nullptr) access.store(hn::MulAdd(dv, y_branch, db), d, d_branch + i);
  });
  if (d_branch == nullptr || !branch_norm.present()) return;

  // 4. Through the branch's own norm.
  const float* const branch = g.branch + at;
  const TwoSums sums = row_sums<kLayer>(cols, [&](int64_t i, auto access, FloatVector& a, FloatVector& b) HWY_ATTR {
    const auto db = access.load(d, third + i);
    b = access.zero_outside(d, branch_norm.normalised(access.load(d, branch + i)));
    branch_norm.add_gradient(access, i, db, b, branch_gradient);
    a = branch_norm.gained(access, i, db);
    access.store(a, d, third + i);
  });
  for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR {
    const auto normed = branch_norm.normalised(access.load(d, branch + i));
    access.store(branch_norm.input_gradient(access.load(d, third + i), normed, mean(sums.first), mean(sums.second)), d,
                 g.d_branch + at + i);
  });
}

void junction_forward(const Junction& junction, const JunctionRows& rows, int64_t row_begin, int64_t row_end) {
  for (int64_t row = row_begin; row < row_end; ++row) {
    junction.layer ? forward_row<true>(junction, rows, row) : forward_row<false>(junction, rows, row);
  }
}

void junction_backward(const Junction& junction, const JunctionGradients& gradients, int64_t row_begin,
                       int64_t row_end) {
  for (int64_t row = row_begin; row < row_end; ++row) {
    junction.layer ? backward_row<true>(junction, gradients, row) : backward_row<false>(junction, gradients, row);
  }
}

}  // namespace siamese::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace siamese::kernels {

HWY_EXPORT(junction_forward);
HWY_EXPORT(junction_backward);

void junction_forward(const Junction& junction, const JunctionRows& rows, int64_t row_begin, int64_t row_end) {
  HWY_DYNAMIC_DISPATCH(junction_forward)(junction, rows, row_begin, row_end);
}

void junction_backward(const Junction& junction, const JunctionGradients& gradients, int64_t row_begin,
                       int64_t row_end) {
  HWY_DYNAMIC_DISPATCH(junction_backward)(junction, gradients, row_begin, row_end);
}

}  // namespace siamese::kernels
#endif  // HWY_ONCE
