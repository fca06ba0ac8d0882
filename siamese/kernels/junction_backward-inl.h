// One row of a junction backward (the equation stands in siamese/kernels/junction.h), included once per SIMD target.
// From what comes back, d_input, d_x_out, d_y_sum (null: 0), with N' the way back through a norm N:
//   dm = I'(input_scale d_input)
//   dX = x_scale dm + d_x_out        dU = P'(dX)                       d_x = dU
//                                    dV = Q'(dm) + d_y_sum             d_y = y_skip dV
//   db = x_branch dU + y_branch dV                                     d_branch = R'(gate db);   d_gate += db R(z)
// With n the normalised row and g = dy gain,
//   N'(dy) = rstd (g - mean(g) - n mean(g n)),  mean(g) for LayerNorm only;   d_gain += dy n;   d_bias += dy
// so a norm needs two sums over the row before its first element is known. That cuts the row into four loops:
//   1  input_norm_sums    g and n of I, its sums                       only with an input_norm I
//   2  merge_backward     dm; g of P and of Q, their sums
//   3  stream_gradients   dU, dV: d_x and d_y; db or, with R, its g and sums
//   4  branch_backward    d_branch                                     only with a branch_norm R
// n, g and dm are computed again from what was read in each loop: cheaper than rows to keep them in, whose stores get
// in the way of loads at the same place of other pages.
//
// Who owns what: every array is the caller's; the pointers of BackwardRow stand at the row's first element.
//   read       x_sum (U), y_sum (V), branch (z, with R or gate), d_input, d_x_out, d_y_sum; gains, statistics, x_scale
//   written    d_x and d_y, past the caches: they are next read after a whole branch; d_branch, which is read at once
//   added to   d_x_scale, d_gate and the norms' gradients
//   scratch    3 leaves g of R in d_branch, that of a bfloat16 branch here
// None of d_x, d_y, d_branch may be one of the read arrays.
#include <algorithm>
#include <cstdint>

#include "siamese/kernels/junction.h"
#include "siamese/kernels/row_pass.h"
#include "siamese/kernels/row_steps-inl.h"

#if defined(SIAMESE_KERNELS_JUNCTION_BACKWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SIAMESE_KERNELS_JUNCTION_BACKWARD_INL_H_
#undef SIAMESE_KERNELS_JUNCTION_BACKWARD_INL_H_
#else
#define SIAMESE_KERNELS_JUNCTION_BACKWARD_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace siamese::kernels::HWY_NAMESPACE {

// The thread's rows. A loop that asked at each vector whether an array is there would do little else: what does not
// come back is a row of zeros, a gain that is not there one of ones, what is not wanted goes to a row nobody reads.
struct BackwardScratch {
  BackwardScratch(float* rows, int64_t cols)
      : db(rows), zeros(rows + cols), ones(rows + 2 * cols), unwanted(rows + 3 * cols) {
    std::fill_n(zeros, cols, 0.0F);
    std::fill_n(ones, cols, 1.0F);
    std::fill_n(unwanted, cols, 0.0F);
  }
  float* db;
  float* zeros;
  float* ones;
  float* unwanted;
};

// The row that begins `at` elements into an array; without one, `otherwise`.
template <class T>
HWY_INLINE T* row_or(T* array, int64_t at, float* otherwise) {
  return array == nullptr ? reinterpret_cast<T*>(otherwise) : array + at;
}

// kTwo: two streams. Known: which norms there are, as far as that is known when compiling (JunctionNorms).
template <bool kLayer, bool kTwo, class Known, class T>
class BackwardRow {
 public:
  HWY_INLINE BackwardRow(const Junction& junction, const JunctionGradientsOf<T>& g, const BackwardScratch& scratch,
                         int64_t row)
      : cols_(junction.cols),
        x_branch_(junction.x_branch),
        y_branch_(junction.y_branch),
        y_skip_(junction.y_skip),
        input_scale_(junction.input_scale),
        x_scale_(junction.x_scale),
        gate_(junction.gate),
        branch_norm_(junction.branch_norm, row, scratch.ones),
        x_norm_(junction.x_norm, row, scratch.ones),
        y_norm_(junction.y_norm, row, scratch.ones),
        input_norm_(junction.input_norm, row, scratch.ones),
        branch_gradient_(g.d_branch == nullptr ? RowNormGradient() : g.branch_norm, scratch.unwanted),
        x_gradient_(g.x_norm, scratch.unwanted),
        y_gradient_(g.y_norm, scratch.unwanted),
        input_gradient_(g.input_norm, scratch.unwanted),
        d_x_scale_(g.d_x_scale == nullptr ? scratch.unwanted : g.d_x_scale),
        d_gate_(g.d_gate == nullptr || g.d_branch == nullptr ? scratch.unwanted : g.d_gate),
        x_sum_(row_or_null(g.x_sum, row * cols_)),
        y_sum_(g.y_sum + row * cols_),
        d_input_(row_or(g.d_input, row * cols_, scratch.zeros)),
        d_x_out_(row_or(g.d_x_out, row * cols_, scratch.zeros)),
        d_y_sum_(row_or(g.d_y_sum, row * cols_, scratch.zeros)),
        d_x_(row_or(g.d_x, row * cols_, scratch.unwanted)),
        d_y_(row_or(g.d_y, row * cols_, scratch.unwanted)),
        d_branch_(row_or(g.d_branch, row * cols_, scratch.unwanted)),
        branch_(row_or(g.d_branch == nullptr ? nullptr : g.branch, row * cols_, scratch.zeros)),
        db_row_(as_floats(d_branch_, scratch.db)),
        past_cache_(junction.past_cache && g.d_y != nullptr && can_store_past_cache(g.d_y, cols_) &&
                    (!kTwo || (g.d_x != nullptr && can_store_past_cache(g.d_x, cols_)))) {
    branch_norm_.load_statistics();
    x_norm_.load_statistics();
    y_norm_.load_statistics();
    input_norm_.load_statistics();
  }

  HWY_INLINE void run() {
    if (input_norm_.present()) input_norm_sums();
    merge_backward();
    stream_gradients();
    if (branch_norm_.present()) branch_backward();
  }

 private:
  // Gains, biases and x_scale at one vector of columns.
  struct Columns {
    AffineVectors x, y, input;
    FloatVector x_scale;
  };

  SIAMESE_ROW_PASS void input_norm_sums() {
    const Floats d;
    GradientSums<kLayer> sums;
    for_each_vector(0, cols_, [&](int64_t i, auto access) HWY_ATTR {
      prefetch_all(kAhead + i, d_y_sum_);
      if constexpr (kTwo) prefetch_all(kAhead + i, d_x_out_);
      const Columns at = columns(access, i);
      const auto di = input_gradient(access, i);
      const auto normed = normed_merge(at, normed_u(access, i), normed_v(access, i));
      input_gradient_.store(access, i, input_gradient_.load(access, i), di, normed);
      sums.add(hn::Mul(di, at.input.gain), access.zero_outside(d, normed));
    });
    input_means_ = NormMeans(sums.total(), cols_);
  }

  SIAMESE_ROW_PASS void merge_backward() {
    const Floats d;
    GradientSums<kLayer> u_sums;
    GradientSums<kLayer> v_sums;
    for_each_vector(0, cols_, [&](int64_t i, auto access) HWY_ATTR {
      prefetch_all(kAhead + i, d_branch_);
      if (input_norm_.present()) {
        prefetch_all(kAhead + i, d_input_);
        if constexpr (kTwo) prefetch_all(kAhead + i, x_sum_);
      } else {
        prefetch_all(kAhead + i, d_y_sum_);
      }
      if (branch_norm_.present() || HWY_UNLIKELY(gate_ != nullptr)) prefetch_all(kAhead + i, branch_);
      if (!past_cache_) prefetch_all(kAhead + i, d_x_, d_y_);
      // All loads before the first store: rows of different arrays often stand at the same place in their pages, and
      // a load right after a store at such a place waits for it.
      const Columns at = columns(access, i);
      const AffineVectors x_before = x_gradient_.load(access, i);
      const AffineVectors y_before = y_gradient_.load(access, i);
      const auto d_x_scale = access.load(d, d_x_scale_ + i);
      const auto u = normed_u(access, i);
      const auto v = normed_v(access, i);
      const auto dm = merge_gradient(access, at, i, u, v);
      if constexpr (kTwo) {
        const auto dx = x_out_gradient(access, at, i, dm);
        if (scales_x()) access.store(hn::MulAdd(dm, x_out(at, u), d_x_scale), d, d_x_scale_ + i);
        if (x_norm_.present()) {
          x_gradient_.store(access, i, x_before, dx, u);
          u_sums.add(access.zero_outside(d, hn::Mul(dx, at.x.gain)), access.zero_outside(d, u));
        }
      }
      if (y_norm_.present()) {
        y_gradient_.store(access, i, y_before, dm, v);
        v_sums.add(access.zero_outside(d, hn::Mul(dm, at.y.gain)), access.zero_outside(d, v));
      }
    });
    x_means_ = NormMeans(u_sums.total(), cols_);
    y_means_ = NormMeans(v_sums.total(), cols_);
  }

  SIAMESE_ROW_PASS void stream_gradients() {
    const Floats d;
    const auto x_branch = hn::Set(d, x_branch_);
    const auto y_branch = hn::Set(d, y_branch_);
    const auto y_skip = hn::Set(d, y_skip_);
    GradientSums<kLayer> sums;
    for_each_vector(0, cols_, [&](int64_t i, auto access) HWY_ATTR {
      prefetch_all(kAhead + i, y_sum_);
      if (!input_norm_.present() && !branch_norm_.present()) prefetch_all(kAhead + i, d_input_);
      if (kTwo && !input_norm_.present()) prefetch_all(kAhead + i, x_sum_, d_x_out_);
      const Columns at = columns(access, i);
      const auto u = normed_u(access, i);
      const auto v = normed_v(access, i);
      const auto dm = merge_gradient(access, at, i, u, v);
      const auto dv = y_sum_gradient(access, at, i, dm, v);
      auto db = hn::Mul(dv, y_branch);
      const AffineVectors branch_at = branch_norm_.affine_at(access, i);
      const AffineVectors branch_before = branch_gradient_.load(access, i);
      auto b = hn::Zero(d);
      if (branch_norm_.present()) b = branch_norm_.normalised(access.load(d, branch_ + i));
      const auto normed_b = b;
      auto gate = hn::Zero(d);
      auto d_gate = hn::Zero(d);
      if (HWY_UNLIKELY(gate_ != nullptr)) {
        b = branch_norm_.present() ? branch_norm_.affine(branch_at, b) : access.load(d, branch_ + i);
        gate = access.load(d, gate_ + i);
        d_gate = access.load(d, d_gate_ + i);
      }
      if constexpr (kTwo) {
        const auto du = x_sum_gradient(access, at, i, dm, u);
        db = hn::MulAdd(du, x_branch, db);
        store_result(access, past_cache_, du, d_x_ + i);
      }
      store_result(access, past_cache_, hn::Mul(dv, y_skip), d_y_ + i);
      if (HWY_UNLIKELY(gate_ != nullptr)) {
        access.store(hn::MulAdd(db, b, d_gate), d, d_gate_ + i);
        db = hn::Mul(db, gate);
      }
      if (branch_norm_.present()) {
        branch_gradient_.store(access, i, branch_before, db, normed_b);
        db = hn::Mul(db, branch_at.gain);
        sums.add(access.zero_outside(d, db), access.zero_outside(d, normed_b));
        access.store(db, d, db_row_ + i);
      } else {
        access.store(db, d, d_branch_ + i);
      }
    });
    branch_means_ = NormMeans(sums.total(), cols_);
  }

  SIAMESE_ROW_PASS void branch_backward() {
    const Floats d;
    for_each_vector(0, cols_, [&](int64_t i, auto access) HWY_ATTR {
      if (!input_norm_.present()) prefetch_all(kAhead + i, d_input_);
      const auto normed = branch_norm_.normalised(access.load(d, branch_ + i));
      access.store(branch_norm_.input_gradient(access.load(d, db_row_ + i), normed, branch_means_), d, d_branch_ + i);
    });
  }

  template <class Access>
  HWY_INLINE Columns columns(Access access, int64_t i) const {
    return {x_norm_.affine_at(access, i), y_norm_.affine_at(access, i), input_norm_.affine_at(access, i),
            scales_x() ? access.load(Floats(), x_scale_ + i) : hn::Set(Floats(), 1.0F)};
  }

  HWY_INLINE bool scales_x() const {
    return kTwo && (Known::x_scale == Presence::unknown ? x_scale_ != nullptr : Known::x_scale == Presence::yes);
  }

  // n of P; U itself without the norm, 0 without the stream.
  template <class Access>
  SIAMESE_ROW_PASS FloatVector normed_u(Access access, int64_t i) const {
    if constexpr (!kTwo) return hn::Zero(Floats());
    const auto value = access.load(Floats(), x_sum_ + i);
    return x_norm_.present() ? x_norm_.normalised(value) : value;
  }

  // n of Q; V itself without the norm.
  template <class Access>
  SIAMESE_ROW_PASS FloatVector normed_v(Access access, int64_t i) const {
    const auto value = access.load(Floats(), y_sum_ + i);
    return y_norm_.present() ? y_norm_.normalised(value) : value;
  }

  // X from n of P.
  SIAMESE_ROW_PASS FloatVector x_out(const Columns& at, FloatVector normed) const {
    return x_norm_.present() ? x_norm_.affine(at.x, normed) : normed;
  }

  // n of I from n of P and n of Q.
  SIAMESE_ROW_PASS FloatVector normed_merge(const Columns& at, FloatVector u, FloatVector v) const {
    if (y_norm_.present()) v = y_norm_.affine(at.y, v);
    if constexpr (kTwo) {
      u = x_out(at, u);
      if (scales_x()) u = hn::Mul(u, at.x_scale);
      v = hn::Add(u, v);
    }
    return input_norm_.normalised(v);
  }

  // input_scale d_input
  template <class Access>
  SIAMESE_ROW_PASS FloatVector input_gradient(Access access, int64_t i) const {
    return hn::Mul(access.load(Floats(), d_input_ + i), hn::Set(Floats(), input_scale_));
  }

  // dm from n of P and n of Q, once loop 1 is done.
  template <class Access>
  SIAMESE_ROW_PASS FloatVector merge_gradient(Access access, const Columns& at, int64_t i, FloatVector u,
                                              FloatVector v) const {
    const auto di = input_gradient(access, i);
    if (!input_norm_.present()) return di;
    return input_norm_.input_gradient(hn::Mul(di, at.input.gain), normed_merge(at, u, v), input_means_);
  }

  // dX
  template <class Access>
  SIAMESE_ROW_PASS FloatVector x_out_gradient(Access access, const Columns& at, int64_t i, FloatVector dm) const {
    if (scales_x()) dm = hn::Mul(dm, at.x_scale);
    return hn::Add(dm, access.load(Floats(), d_x_out_ + i));
  }

  // dU
  template <class Access>
  SIAMESE_ROW_PASS FloatVector x_sum_gradient(Access access, const Columns& at, int64_t i, FloatVector dm,
                                              FloatVector u) const {
    const auto dx = x_out_gradient(access, at, i, dm);
    if (!x_norm_.present()) return dx;
    return x_norm_.input_gradient(hn::Mul(dx, at.x.gain), u, x_means_);
  }

  // dV
  template <class Access>
  SIAMESE_ROW_PASS FloatVector y_sum_gradient(Access access, const Columns& at, int64_t i, FloatVector dm,
                                              FloatVector v) const {
    if (y_norm_.present()) dm = y_norm_.input_gradient(hn::Mul(dm, at.y.gain), v, y_means_);
    return hn::Add(dm, access.load(Floats(), d_y_sum_ + i));
  }

  int64_t cols_;
  float x_branch_, y_branch_, y_skip_, input_scale_;
  const float* x_scale_;
  const float* gate_;
  RowNormAt<kLayer, Known::branch> branch_norm_;
  RowNormAt<kLayer, Known::x> x_norm_;
  RowNormAt<kLayer, Known::y> y_norm_;
  RowNormAt<kLayer, Known::input> input_norm_;
  AffineGradient<kLayer> branch_gradient_, x_gradient_, y_gradient_, input_gradient_;
  NormMeans branch_means_, x_means_, y_means_, input_means_;
  float* d_x_scale_;
  float* d_gate_;
  const float* x_sum_;
  const float* y_sum_;
  const T* d_input_;
  const float* d_x_out_;
  const float* d_y_sum_;
  float* d_x_;
  float* d_y_;
  T* d_branch_;
  const T* branch_;
  float* db_row_;
  bool past_cache_;
};

// Everything is inlined: a loop's running sums and the pointers above would otherwise live in memory.
template <bool kLayer, bool kTwo, class Known, class T>
HWY_FLATTEN void backward_row(const Junction& junction, const JunctionGradientsOf<T>& gradients,
                              const BackwardScratch& scratch, int64_t row) {
  BackwardRow<kLayer, kTwo, Known, T>(junction, gradients, scratch, row).run();
}

}  // namespace siamese::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
