// One row of a junction backward (the equation stands in siamese/kernels/junction.h), included once per SIMD target.
// From what comes back, d_input, d_x_out, d_y_sum (null: 0), with N' the way back through a norm N:
//   dm = I'(input_scale d_input)
//   dX = x_scale dm + d_x_out        dU = P'(dX)                       d_x = dU
//                                    dV = Q'(dm) + d_y_sum             d_y = y_skip dV
//   db = x_branch dU + y_branch dV                                     d_branch = R'(db)
// With n the normalised row and g = dy gain,
//   N'(dy) = rstd (g - mean(g) - n mean(g n)),  mean(g) for LayerNorm only;   d_gain += dy n;   d_bias += dy
// so a norm needs two sums over the row before its first element is known. That cuts the row into four loops:
//   1  input_norm_sums    g and n of I, its sums                       only with an input_norm I
//   2  merge_backward     dm; g of P and of Q, their sums              without a norm dX is dU, dm a part of dV
//   3  stream_gradients   dU, dV: d_x and d_y; db or, with R, its g and sums
//   4  branch_backward    d_branch                                     only with a branch_norm R
// n is computed again from U, V and z in each loop, out of the nearest cache: cheaper than a row more to keep.
//
// Who owns what: every array is the caller's; the pointers of BackwardRow stand at the row's first element.
//   read       x_sum (U), y_sum (V), branch (z, with R only), d_input, d_x_out, d_y_sum; gains, statistics, x_scale
//   written    d_x, d_y, d_branch; null: not wanted
//   added to   d_x_scale and the norms' gradients; null: not wanted
//   on the way du_row and dv_row carry a row from loop to loop. They are d_x and d_y, or the thread's scratch where
//              those are not wanted: 1 leaves g and n of I there, 2 leaves g of P (or dX) and g of Q (or dm). 3 leaves
//              g of R in d_branch, that of a bfloat16 branch in the scratch.
// None of d_x, d_y, d_branch may be one of the read arrays.
#include <cstdint>

#include "siamese/kernels/junction.h"
#include "siamese/kernels/row_steps-inl.h"

#if defined(SIAMESE_KERNELS_JUNCTION_BACKWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SIAMESE_KERNELS_JUNCTION_BACKWARD_INL_H_
#undef SIAMESE_KERNELS_JUNCTION_BACKWARD_INL_H_
#else
#define SIAMESE_KERNELS_JUNCTION_BACKWARD_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace siamese::kernels::HWY_NAMESPACE {

// kTwo: two streams. Known: which norms there are, as far as that is known when compiling (JunctionNorms).
template <bool kLayer, bool kTwo, class Known, class T>
class BackwardRow {
 public:
  HWY_INLINE BackwardRow(const Junction& junction, const JunctionGradientsOf<T>& g, int64_t row)
      : cols_(junction.cols),
        x_branch_(junction.x_branch),
        y_branch_(junction.y_branch),
        y_skip_(junction.y_skip),
        input_scale_(junction.input_scale),
        x_scale_(junction.x_scale),
        branch_norm_(junction.branch_norm, row),
        x_norm_(junction.x_norm, row),
        y_norm_(junction.y_norm, row),
        input_norm_(junction.input_norm, row),
        branch_gradient_(g.branch_norm),
        x_gradient_(g.x_norm),
        y_gradient_(g.y_norm),
        input_gradient_(g.input_norm),
        d_x_scale_(g.d_x_scale),
        x_sum_(row_or_null(g.x_sum, row * cols_)),
        y_sum_(row_or_null(g.y_sum, row * cols_)),
        d_input_(row_or_null(g.d_input, row * cols_)),
        d_x_out_(row_or_null(g.d_x_out, row * cols_)),
        d_y_sum_(row_or_null(g.d_y_sum, row * cols_)),
        d_x_(row_or_null(g.d_x, row * cols_)),
        d_y_(row_or_null(g.d_y, row * cols_)),
        d_branch_(row_or_null(g.d_branch, row * cols_)),
        branch_(d_branch_ != nullptr && branch_norm_.present() ? g.branch + row * cols_ : nullptr),
        du_row_(d_x_ == nullptr ? g.scratch : d_x_),
        dv_row_(d_y_ == nullptr ? g.scratch + cols_ : d_y_),
        db_row_(as_floats(d_branch_, g.scratch + 2 * cols_)) {
    branch_norm_.load_statistics();
    x_norm_.load_statistics();
    y_norm_.load_statistics();
    input_norm_.load_statistics();
  }

  HWY_INLINE void run() {
    NormMeans input_means;
    if (input_norm_.present()) input_means = input_norm_sums();
    const StreamMeans means = merge_backward(input_means);
    const NormMeans branch_means = stream_gradients(means);
    if (branch_ != nullptr) branch_backward(branch_means);
  }

 private:
  struct StreamMeans {
    NormMeans x, y;
  };

  HWY_INLINE NormMeans input_norm_sums() {
    const Floats d;
    const auto scale = hn::Set(d, input_scale_);
    GradientSums<kLayer> sums;
    for_each_vector(0, cols_, [&](int64_t i, auto access) HWY_ATTR {
      prefetch(i, d_x_out_, d_y_sum_, d_branch_);
      const auto di = hn::Mul(load_or_zero(access, d_input_, i), scale);
      const auto u = normed_u(access, i);
      const auto normed = input_norm_.normalised(merged(access, i, u, normed_v(access, i)));
      input_norm_.add_gradient(access, i, di, normed, input_gradient_);
      const auto gained = input_norm_.gained(access, i, di);
      sums.add(gained, access.zero_outside(d, normed));
      access.store(gained, d, du_row_ + i);
      access.store(normed, d, dv_row_ + i);
    });
    return NormMeans(sums.total(), cols_);
  }

  HWY_INLINE StreamMeans merge_backward(const NormMeans& input_means) {
    const Floats d;
    GradientSums<kLayer> u_sums;
    GradientSums<kLayer> v_sums;
    for_each_vector(0, cols_, [&](int64_t i, auto access) HWY_ATTR {
      if (input_norm_.present()) {
        prefetch(cols_ + i, d_x_, d_y_);
      } else {
        prefetch(i, d_y_sum_, branch_, d_branch_);
      }
      auto dm = merge_gradient(access, i, input_means);
      const auto u = normed_u(access, i);
      const auto v = normed_v(access, i);
      if constexpr (kTwo) {
        auto dx = x_out_gradient(access, i, dm, u);
        if (x_norm_.present()) {
          x_norm_.add_gradient(access, i, dx, u, x_gradient_);
          dx = x_norm_.gained(access, i, dx);
          u_sums.add(access.zero_outside(d, dx), access.zero_outside(d, u));
        }
        access.store(dx, d, du_row_ + i);
      }
      if (y_norm_.present()) {
        y_norm_.add_gradient(access, i, dm, v, y_gradient_);
        dm = y_norm_.gained(access, i, dm);
        v_sums.add(access.zero_outside(d, dm), access.zero_outside(d, v));
      }
      access.store(dm, d, dv_row_ + i);
    });
    return {NormMeans(u_sums.total(), cols_), NormMeans(v_sums.total(), cols_)};
  }

  HWY_INLINE NormMeans stream_gradients(const StreamMeans& means) {
    const Floats d;
    const auto x_branch = hn::Set(d, x_branch_);
    const auto y_branch = hn::Set(d, y_branch_);
    const auto y_skip = hn::Set(d, y_skip_);
    GradientSums<kLayer> sums;
    for_each_vector(0, cols_, [&](int64_t i, auto access) HWY_ATTR {
      prefetch(cols_ + i, d_input_, x_sum_, y_sum_);
      if (!input_norm_.present()) prefetch(cols_ + i, d_x_out_, d_x_, d_y_);
      // All loads before the first store: rows of different arrays often stand at the same place in their pages, and
      // a load right after a store at such a place waits for it.
      auto dv = access.load(d, dv_row_ + i);
      if (y_norm_.present()) dv = y_norm_.input_gradient(dv, normed_v(access, i), means.y);
      dv = hn::Add(dv, load_or_zero(access, d_y_sum_, i));
      auto normed_b = hn::Zero(d);
      if (branch_ != nullptr) normed_b = branch_norm_.normalised(access.load(d, branch_ + i));
      auto db = hn::Mul(dv, y_branch);
      if constexpr (kTwo) {
        auto du = access.load(d, du_row_ + i);
        if (x_norm_.present()) du = x_norm_.input_gradient(du, normed_u(access, i), means.x);
        if (HWY_LIKELY(d_x_ != nullptr)) access.store(du, d, d_x_ + i);
        db = hn::MulAdd(du, x_branch, db);
      }
      if (HWY_LIKELY(d_y_ != nullptr)) access.store(hn::Mul(dv, y_skip), d, d_y_ + i);
      if (HWY_UNLIKELY(d_branch_ == nullptr)) return;
      if (branch_ != nullptr) {
        branch_norm_.add_gradient(access, i, db, normed_b, branch_gradient_);
        db = branch_norm_.gained(access, i, db);
        sums.add(access.zero_outside(d, db), access.zero_outside(d, normed_b));
        access.store(db, d, db_row_ + i);
      } else {
        access.store(db, d, d_branch_ + i);
      }
    });
    return NormMeans(sums.total(), cols_);
  }

  HWY_INLINE void branch_backward(const NormMeans& means) {
    const Floats d;
    for_each_vector(0, cols_, [&](int64_t i, auto access) HWY_ATTR {
      const auto normed = branch_norm_.normalised(access.load(d, branch_ + i));
      access.store(branch_norm_.input_gradient(access.load(d, db_row_ + i), normed, means), d, d_branch_ + i);
    });
  }

  template <class Access, class From>
  HWY_INLINE static FloatVector load_or_zero(Access access, const From* from, int64_t i) {
    return HWY_LIKELY(from != nullptr) ? access.load(Floats(), from + i) : hn::Zero(Floats());
  }

  // n of P; U itself without the norm, 0 without the stream.
  template <class Access>
  HWY_INLINE FloatVector normed_u(Access access, int64_t i) const {
    if constexpr (!kTwo) return hn::Zero(Floats());
    const auto value = access.load(Floats(), x_sum_ + i);
    return x_norm_.present() ? x_norm_.normalised(value) : value;
  }

  // n of Q; V itself without the norm.
  template <class Access>
  HWY_INLINE FloatVector normed_v(Access access, int64_t i) const {
    const auto value = access.load(Floats(), y_sum_ + i);
    return y_norm_.present() ? y_norm_.normalised(value) : value;
  }

  // X from n of P.
  template <class Access>
  HWY_INLINE FloatVector x_out(Access access, int64_t i, FloatVector normed) const {
    return x_norm_.present() ? x_norm_.affine(access, i, normed) : normed;
  }

  // m from n of P and n of Q.
  template <class Access>
  HWY_INLINE FloatVector merged(Access access, int64_t i, FloatVector u, FloatVector v) const {
    if (y_norm_.present()) v = y_norm_.affine(access, i, v);
    if constexpr (!kTwo) return v;
    u = x_out(access, i, u);
    if (HWY_UNLIKELY(x_scale_ != nullptr)) u = hn::Mul(u, access.load(Floats(), x_scale_ + i));
    return hn::Add(u, v);
  }

  // dm, from what step 1 left of I.
  template <class Access>
  HWY_INLINE FloatVector merge_gradient(Access access, int64_t i, const NormMeans& means) const {
    const Floats d;
    if (!input_norm_.present()) return hn::Mul(load_or_zero(access, d_input_, i), hn::Set(d, input_scale_));
    return input_norm_.input_gradient(access.load(d, du_row_ + i), access.load(d, dv_row_ + i), means);
  }

  // dX; adds to the gradient of x_scale.
  template <class Access>
  HWY_INLINE FloatVector x_out_gradient(Access access, int64_t i, FloatVector dm, FloatVector normed) const {
    const Floats d;
    if (HWY_UNLIKELY(x_scale_ != nullptr)) {
      if (d_x_scale_ != nullptr) {
        access.store(hn::MulAdd(dm, x_out(access, i, normed), access.load(d, d_x_scale_ + i)), d, d_x_scale_ + i);
      }
      dm = hn::Mul(dm, access.load(d, x_scale_ + i));
    }
    return hn::Add(dm, load_or_zero(access, d_x_out_, i));
  }

  int64_t cols_;
  float x_branch_, y_branch_, y_skip_, input_scale_;
  const float* x_scale_;
  RowNormAt<kLayer, Known::branch> branch_norm_;
  RowNormAt<kLayer, Known::x> x_norm_;
  RowNormAt<kLayer, Known::y> y_norm_;
  RowNormAt<kLayer, Known::input> input_norm_;
  RowNormGradient branch_gradient_, x_gradient_, y_gradient_, input_gradient_;
  float* d_x_scale_;
  const float* x_sum_;
  const float* y_sum_;
  const T* d_input_;
  const float* d_x_out_;
  const float* d_y_sum_;
  float* d_x_;
  float* d_y_;
  T* d_branch_;
  const T* branch_;
  float* du_row_;
  float* dv_row_;
  float* db_row_;
};

// Everything is inlined: a loop's running sums and the pointers above would otherwise live in memory.
template <bool kLayer, bool kTwo, class Known, class T>
HWY_FLATTEN void backward_row(const Junction& junction, const JunctionGradientsOf<T>& gradients, int64_t row) {
  BackwardRow<kLayer, kTwo, Known, T>(junction, gradients, row).run();
}

}  // namespace siamese::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
