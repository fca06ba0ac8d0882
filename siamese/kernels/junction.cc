#include "siamese/kernels/junction.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "siamese/kernels/junction.cc"
#include "hwy/foreach_target.h"

#include "hwy/cache_control.h"
#include "hwy/highway.h"

#include "siamese/kernels/row_steps-inl.h"

HWY_BEFORE_NAMESPACE();
namespace siamese::kernels::HWY_NAMESPACE {

// Which norms a junction has, as far as that is known when compiling.
template <Presence kBranch, Presence kX, Presence kY, Presence kInput>
struct Norms {
  static constexpr Presence branch = kBranch, x = kX, y = kY, input = kInput;
};

// kTwo: two streams. Everything is inlined: a loop's running sums would otherwise live in memory.
template <bool kLayer, bool kTwo, class Known>
HWY_FLATTEN void forward_row(const Junction& junction, const JunctionRows& rows, int64_t row) {
  const Floats d;
  const int64_t cols = junction.cols;
  const int64_t at = row * cols;
  RowNormAt<kLayer, Known::branch> branch_norm(junction.branch_norm, row);
  RowNormAt<kLayer, Known::x> x_norm(junction.x_norm, row);
  RowNormAt<kLayer, Known::y> y_norm(junction.y_norm, row);
  RowNormAt<kLayer, Known::input> input_norm(junction.input_norm, row);
  const auto row_or_null = [&](auto* array) { return array == nullptr ? nullptr : array + at; };
  const float* const branch = row_or_null(rows.branch);
  const float* const x = row_or_null(rows.x);
  const float* const y = rows.y + at;
  float* const x_sum = row_or_null(rows.x_sum);
  float* const y_sum = row_or_null(rows.y_sum);
  float* const x_out = row_or_null(rows.x_out);
  float* const input = row_or_null(rows.input);
  // U of a normalised X is for backward alone: it goes past the caches, at the last look at it, and is kept until then
  // in X's place. A plain store would fetch from memory what it overwrites.
  const bool apart = kTwo && x_norm.present() && x_sum != nullptr && input != nullptr;
  const bool stream = apart && can_stream(x_sum, cols);
  float* const u_kept = apart ? x_out : x_sum;
  float* const x_sum_ahead = stream ? nullptr : x_sum;
  // 1. The statistics of b.
  if (branch_norm.present() && branch != nullptr) {
    RowSums<kLayer> sums;
    for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR {
      fetch(i, y, y_sum);
      const auto z = access.load(d, branch + i);
      sums.add(z, z);
    });
    branch_norm.set_statistics(sums.total(), cols);
  }

  // 2. U and V with the statistics of their norms.
  const auto x_branch = hn::Set(d, junction.x_branch);
  const auto y_branch = hn::Set(d, junction.y_branch);
  const auto y_skip = hn::Set(d, junction.y_skip);
  RowSums<kLayer> u_sums;
  RowSums<kLayer> v_sums;
  for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR {
    fetch(i, x_out, input);
    auto b = hn::Zero(d);
    if (HWY_LIKELY(branch != nullptr)) {
      b = access.load(d, branch + i);
      if (branch_norm.present()) b = branch_norm.affine(access, i, branch_norm.normalised(b));
    }
    auto v = access.load(d, y + i);
    if constexpr (kTwo) {
      auto u = access.load(d, x + i);
      if (HWY_LIKELY(x_sum != nullptr)) {
        u = hn::MulAdd(b, x_branch, u);
        access.store(u, d, u_kept + i);
      }
      u = access.zero_outside(d, u);
      if (x_norm.present()) u_sums.add(u, u);
    }
    if (HWY_LIKELY(y_sum != nullptr)) {
      v = hn::MulAdd(b, y_branch, hn::Mul(v, y_skip));
      access.store(v, d, y_sum + i);
    }
    v = access.zero_outside(d, v);
    if (y_norm.present()) v_sums.add(v, v);
  });
  if (x_norm.present()) x_norm.set_statistics(u_sums.total(), cols);
  if (y_norm.present()) y_norm.set_statistics(v_sums.total(), cols);
  if (input == nullptr) return;

  // 3. The merge, with the statistics of its norm.
  const float* const u_row = x_sum == nullptr ? x : u_kept;
  const float* const v_row = y_sum == nullptr ? y : y_sum;
  const float* const x_scale = junction.x_scale;
  const auto scale = hn::Set(d, junction.input_scale);
  RowSums<kLayer> sums;
  for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR {
    fetch(cols + i, branch, x, y);
    if (!input_norm.present()) fetch(cols + i, x_sum_ahead, y_sum);
    auto merged = access.load(d, v_row + i);
    if (y_norm.present()) merged = y_norm.affine(access, i, y_norm.normalised(merged));
    if constexpr (kTwo) {
      auto value = access.load(d, u_row + i);
      if (x_norm.present()) {
        if (apart) store_result(access, stream, value, x_sum + i);
        value = x_norm.affine(access, i, x_norm.normalised(value));
        access.store(value, d, x_out + i);
      }
      if (HWY_UNLIKELY(x_scale != nullptr)) value = hn::Mul(value, access.load(d, x_scale + i));
      merged = hn::Add(value, merged);
    }
    if (input_norm.present()) {
      access.store(merged, d, input + i);
      merged = access.zero_outside(d, merged);
      sums.add(merged, merged);
    } else {
      access.store(hn::Mul(merged, scale), d, input + i);
    }
  });
  if (!input_norm.present()) return;

  // 4. The norm of the merge.
  input_norm.set_statistics(sums.total(), cols);
  for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR {
    fetch(cols + i, x_sum_ahead, y_sum);
    const auto normed = input_norm.normalised(access.load(d, input + i));
    access.store(hn::Mul(input_norm.affine(access, i, normed), scale), d, input + i);
  });
}

template <bool kLayer, bool kTwo, class Known>
HWY_FLATTEN void backward_row(const Junction& junction, const JunctionGradients& g, int64_t row) {
  const Floats d;
  const int64_t cols = junction.cols;
  const int64_t at = row * cols;
  RowNormAt<kLayer, Known::branch> branch_norm(junction.branch_norm, row);
  RowNormAt<kLayer, Known::x> x_norm(junction.x_norm, row);
  RowNormAt<kLayer, Known::y> y_norm(junction.y_norm, row);
  RowNormAt<kLayer, Known::input> input_norm(junction.input_norm, row);
  branch_norm.load_statistics();
  x_norm.load_statistics();
  y_norm.load_statistics();
  input_norm.load_statistics();
  const float* const x_scale = junction.x_scale;
  float* const d_x_scale = g.d_x_scale;
  const RowNormGradient x_gradient = g.x_norm;
  const RowNormGradient y_gradient = g.y_norm;
  const RowNormGradient input_gradient = g.input_norm;
  const RowNormGradient branch_gradient = g.branch_norm;
  const auto row_or_null = [&](auto* array) { return array == nullptr ? nullptr : array + at; };
  const float* const x_sum = row_or_null(g.x_sum);
  const float* const y_sum = row_or_null(g.y_sum);
  const float* const d_input = row_or_null(g.d_input);
  const float* const d_x_out = row_or_null(g.d_x_out);
  const float* const d_y_sum = row_or_null(g.d_y_sum);
  float* const d_x = row_or_null(g.d_x);
  float* const d_y = row_or_null(g.d_y);
  float* const d_branch = row_or_null(g.d_branch);
  const float* const branch = d_branch != nullptr && branch_norm.present() ? g.branch + at : nullptr;
  const auto load_or_zero = [&](auto access, const float* from, int64_t i) HWY_ATTR {
    return HWY_LIKELY(from != nullptr) ? access.load(d, from + i) : hn::Zero(d);
  };
  const auto scale = hn::Set(d, junction.input_scale);

  // X before its scale, from the normalised U (without x_norm: U), and m.
  const auto normed_u = [&](auto access, int64_t i) HWY_ATTR {
    const auto value = access.load(d, x_sum + i);
    return x_norm.present() ? x_norm.normalised(value) : value;
  };
  const auto normed_v = [&](auto access, int64_t i) HWY_ATTR {
    const auto value = access.load(d, y_sum + i);
    return y_norm.present() ? y_norm.normalised(value) : value;
  };
  const auto x_value = [&](auto access, int64_t i, FloatVector normed)
                           HWY_ATTR { return x_norm.present() ? x_norm.affine(access, i, normed) : normed; };
  const auto merged = [&](auto access, int64_t i, FloatVector u, FloatVector v) HWY_ATTR {
    if (y_norm.present()) v = y_norm.affine(access, i, v);
    if constexpr (!kTwo) return v;
    u = x_value(access, i, u);
    if (HWY_UNLIKELY(x_scale != nullptr)) u = hn::Mul(u, access.load(d, x_scale + i));
    return hn::Add(u, v);
  };

  // What a loop leaves for the next stands where dU and dV will be.
  float* const du_row = d_x == nullptr ? g.scratch : d_x;
  float* const dv_row = d_y == nullptr ? g.scratch + cols : d_y;

  // 1. du gain and the normalised m, and the sums of the input's norm.
  NormMeans input_means;
  if (input_norm.present()) {
    GradientSums<kLayer> sums;
    for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR {
      fetch(i, d_x_out, d_y_sum, d_branch);
      const auto di = hn::Mul(load_or_zero(access, d_input, i), scale);
      auto u = hn::Zero(d);
      if constexpr (kTwo) u = normed_u(access, i);
      const auto normed = input_norm.normalised(merged(access, i, u, normed_v(access, i)));
      input_norm.add_gradient(access, i, di, normed, input_gradient);
      const auto gained = input_norm.gained(access, i, di);
      sums.add(gained, access.zero_outside(d, normed));
      access.store(gained, d, du_row + i);
      access.store(normed, d, dv_row + i);
    });
    input_means = NormMeans(sums.total(), cols);
  }

  // 2. dX gain and dQ gain (without the norm: dU, dV), and the sums of P and Q.
  GradientSums<kLayer> u_sums;
  GradientSums<kLayer> v_sums;
  for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR {
    if (input_norm.present()) {
      fetch(cols + i, d_x, d_y);
    } else {
      fetch(i, d_y_sum, branch, d_branch);
    }
    auto dm = hn::Zero(d);
    if (input_norm.present()) {
      dm = input_norm.input_gradient(access.load(d, du_row + i), access.load(d, dv_row + i), input_means);
    } else {
      dm = hn::Mul(load_or_zero(access, d_input, i), scale);
    }
    auto u = hn::Zero(d);
    if constexpr (kTwo) u = normed_u(access, i);
    const auto v = normed_v(access, i);
    if constexpr (kTwo) {
      auto dx = dm;
      if (HWY_UNLIKELY(x_scale != nullptr)) {
        if (d_x_scale != nullptr) {
          access.store(hn::MulAdd(dx, x_value(access, i, u), access.load(d, d_x_scale + i)), d, d_x_scale + i);
        }
        dx = hn::Mul(dx, access.load(d, x_scale + i));
      }
      dx = hn::Add(dx, load_or_zero(access, d_x_out, i));
      if (x_norm.present()) {
        x_norm.add_gradient(access, i, dx, u, x_gradient);
        dx = x_norm.gained(access, i, dx);
        u_sums.add(access.zero_outside(d, dx), access.zero_outside(d, u));
      }
      access.store(dx, d, du_row + i);
    }
    if (y_norm.present()) {
      y_norm.add_gradient(access, i, dm, v, y_gradient);
      dm = y_norm.gained(access, i, dm);
      v_sums.add(access.zero_outside(d, dm), access.zero_outside(d, v));
    }
    access.store(dm, d, dv_row + i);
  });
  const NormMeans x_means(u_sums.total(), cols);
  const NormMeans y_means(v_sums.total(), cols);

  // 3. dU, dV and what they give to the streams and to b; with R, db gain in d_branch and the sums of R.
  const auto x_branch = hn::Set(d, junction.x_branch);
  const auto y_branch = hn::Set(d, junction.y_branch);
  const auto y_skip = hn::Set(d, junction.y_skip);
  GradientSums<kLayer> b_sums;
  for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR {
    fetch(cols + i, d_input, x_sum, y_sum);
    if (!input_norm.present()) fetch(cols + i, d_x_out, d_x, d_y);
    // All loads before the first store: rows of different arrays often stand at the same place in their pages, and a
    // load right after a store at such a place waits for it.
    auto dv = access.load(d, dv_row + i);
    if (y_norm.present()) dv = y_norm.input_gradient(dv, normed_v(access, i), y_means);
    dv = hn::Add(dv, load_or_zero(access, d_y_sum, i));
    auto normed_b = hn::Zero(d);
    if (branch != nullptr) normed_b = branch_norm.normalised(access.load(d, branch + i));
    auto db = hn::Mul(dv, y_branch);
    if constexpr (kTwo) {
      auto du = access.load(d, du_row + i);
      if (x_norm.present()) du = x_norm.input_gradient(du, normed_u(access, i), x_means);
      if (HWY_LIKELY(d_x != nullptr)) access.store(du, d, d_x + i);
      db = hn::MulAdd(du, x_branch, db);
    }
    if (HWY_LIKELY(d_y != nullptr)) access.store(hn::Mul(dv, y_skip), d, d_y + i);
    if (HWY_UNLIKELY(d_branch == nullptr)) return;
    if (branch != nullptr) {
      branch_norm.add_gradient(access, i, db, normed_b, branch_gradient);
      db = branch_norm.gained(access, i, db);
      b_sums.add(access.zero_outside(d, db), access.zero_outside(d, normed_b));
    }
    access.store(db, d, d_branch + i);
  });
  if (branch == nullptr) return;

  // 4. Through the branch's own norm.
  const NormMeans means(b_sums.total(), cols);
  for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR {
    const auto normed = branch_norm.normalised(access.load(d, branch + i));
    access.store(branch_norm.input_gradient(access.load(d, d_branch + i), normed, means), d, d_branch + i);
  });
}

template <bool kLayer, bool kTwo, class Known>
void forward_rows(const Junction& junction, const JunctionRows& rows, int64_t row_begin, int64_t row_end) {
  for (int64_t row = row_begin; row < row_end; ++row) forward_row<kLayer, kTwo, Known>(junction, rows, row);
}

template <bool kLayer, bool kTwo, class Known>
void backward_rows(const Junction& junction, const JunctionGradients& gradients, int64_t row_begin, int64_t row_end) {
  for (int64_t row = row_begin; row < row_end; ++row) backward_row<kLayer, kTwo, Known>(junction, gradients, row);
}

// Calls run with the shape of the junction: the usual ones known when compiling, any other asked for as it runs.
template <class Run>
void with_shape(const Junction& junction, bool two_streams, const Run& run) {
  constexpr auto kNo = Presence::no, kYes = Presence::yes, kUnknown = Presence::unknown;
  const bool branch = junction.branch_norm.present;
  const bool x = junction.x_norm.present;
  const bool y = junction.y_norm.present;
  const bool input = junction.input_norm.present;
  if (two_streams) {
    using std::true_type;
    if (!branch && x && y && input) return run(true_type(), Norms<kNo, kYes, kYes, kYes>());
    if (!branch && !x && y && !input) return run(true_type(), Norms<kNo, kNo, kYes, kNo>());
    return run(true_type(), Norms<kUnknown, kUnknown, kUnknown, kUnknown>());
  }
  using std::false_type;
  if (!branch && y && !input) return run(false_type(), Norms<kNo, kNo, kYes, kNo>());
  if (branch && y && !input) return run(false_type(), Norms<kYes, kNo, kYes, kNo>());
  return run(false_type(), Norms<kUnknown, kUnknown, kUnknown, kUnknown>());
}

void junction_forward(const Junction& junction, const JunctionRows& rows, int64_t row_begin, int64_t row_end) {
  with_shape(junction, rows.x != nullptr, [&](auto two, auto known) {
    const auto run = junction.layer ? forward_rows<true, decltype(two)::value, decltype(known)>
                                    : forward_rows<false, decltype(two)::value, decltype(known)>;
    run(junction, rows, row_begin, row_end);
  });
  hwy::FlushStream();
}

void junction_backward(const Junction& junction, const JunctionGradients& gradients, int64_t row_begin,
                       int64_t row_end) {
  with_shape(junction, gradients.x_sum != nullptr, [&](auto two, auto known) {
    const auto run = junction.layer ? backward_rows<true, decltype(two)::value, decltype(known)>
                                    : backward_rows<false, decltype(two)::value, decltype(known)>;
    run(junction, gradients, row_begin, row_end);
  });
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
