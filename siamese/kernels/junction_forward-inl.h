// One row of a junction forward (the equation stands in siamese/kernels/junction.h), included once per SIMD target.
//
// Four steps, each one loop over the row; what a step wrote is still in the nearest cache when the next one reads it:
//   1  branch_statistics   mean and rstd of z                                 only with a branch_norm R
//   2  add_branch          b = gate R(z),  U = x + x_branch b,  V = y_skip y + y_branch b,  mean and rstd of U and V
//   3  merge               X = P(U),  m = x_scale X + Q(V),  mean and rstd of m
//   4  normalise_merge     input = input_scale I(m)                           only with an input_norm I
// Without I step 3 already writes input = input_scale m. Without `input` the row ends after step 2.
//
// Who owns what: every array is the caller's; the pointers of ForwardRow stand at the row's first element.
//   read     branch (z), x, y; gains, biases, x_scale, gate          branch and x may be null
//   written  x_sum (U), y_sum (V) and x_out (X) in 3, past the caches; input in 3 (m, when I follows; m of a bfloat16
//            input in the scratch) and 4; the norms' mean and rstd at the end of the step that sums them
//   scratch  from 2 to 3 U waits there, and V in the place of m. Without `input` both are written in 2.
// No written array may be one of the read ones or another written one.
#include <cstdint>

#include "siamese/kernels/junction.h"
#include "siamese/kernels/row_pass.h"
#include "siamese/kernels/row_steps-inl.h"

#if defined(SIAMESE_KERNELS_JUNCTION_FORWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SIAMESE_KERNELS_JUNCTION_FORWARD_INL_H_
#undef SIAMESE_KERNELS_JUNCTION_FORWARD_INL_H_
#else
#define SIAMESE_KERNELS_JUNCTION_FORWARD_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace siamese::kernels::HWY_NAMESPACE {

// kTwo: two streams. Known: which norms there are, as far as that is known when compiling (JunctionNorms).
template <bool kLayer, bool kTwo, class Known, class T>
class ForwardRow {
 public:
  HWY_INLINE ForwardRow(const Junction& junction, const JunctionRowsOf<T>& rows, int64_t row)
      : cols_(junction.cols),
        x_branch_(junction.x_branch),
        y_branch_(junction.y_branch),
        y_skip_(junction.y_skip),
        input_scale_(junction.input_scale),
        x_scale_(junction.x_scale),
        gate_(junction.gate),
        branch_norm_(junction.branch_norm, row, ones_in(rows.scratch)),
        x_norm_(junction.x_norm, row, ones_in(rows.scratch)),
        y_norm_(junction.y_norm, row, ones_in(rows.scratch)),
        input_norm_(junction.input_norm, row, ones_in(rows.scratch)),
        branch_(row_or_null(rows.branch, row * cols_)),
        x_(row_or_null(rows.x, row * cols_)),
        y_(rows.y + row * cols_),
        x_sum_(row_or_null(rows.x_sum, row * cols_)),
        y_sum_(row_or_null(rows.y_sum, row * cols_)),
        x_out_(row_or_null(rows.x_out, row * cols_)),
        input_(row_or_null(rows.input, row * cols_)),
        merged_(as_floats(input_, rows.scratch)),
        past_cache_(junction.past_cache && input_ != nullptr && stores_past_cache(y_sum_) && stores_past_cache(x_out_)),
        u_past_cache_((past_cache_ || x_norm_.present()) && input_ != nullptr && stores_past_cache(x_sum_)),
        u_row_(input_ != nullptr ? rows.scratch + cols_ : x_sum_),
        v_row_(input_ != nullptr ? merged_ : y_sum_) {}

  HWY_INLINE void run() {
    if (branch_norm_.present() && branch_ != nullptr) branch_statistics();
    add_branch();
    if (input_ == nullptr) return;
    merge();
    if (input_norm_.present()) normalise_merge();
  }

 private:
  SIAMESE_ROW_PASS void branch_statistics() {
    const Floats d;
    RowSums<kLayer> sums;
    for_each_vector(0, cols_, [&](int64_t i, auto access) HWY_ATTR {
      prefetch_all(kAhead + i, y_);
      const auto z = access.load(d, branch_ + i);
      sums.add(z, z);
    });
    branch_norm_.set_statistics(sums.total(), cols_);
  }

  SIAMESE_ROW_PASS void add_branch() {
    const Floats d;
    const auto x_branch = hn::Set(d, x_branch_);
    const auto y_branch = hn::Set(d, y_branch_);
    const auto y_skip = hn::Set(d, y_skip_);
    RowSums<kLayer> u_sums;
    RowSums<kLayer> v_sums;
    for_each_vector(0, cols_, [&](int64_t i, auto access) HWY_ATTR {
      if (past_cache_) {
        prefetch_all(kAhead + i, input_);
      } else {
        prefetch(kAhead + i, input_, u_past_cache_ ? nullptr : x_sum_, y_sum_, x_out_);
      }
      const auto b = normed_branch(access, i);
      auto v = access.load(d, y_ + i);
      if constexpr (kTwo) {
        auto u = access.load(d, x_ + i);
        if (HWY_LIKELY(x_sum_ != nullptr)) {
          u = hn::MulAdd(b, x_branch, u);
          access.store(u, d, u_row_ + i);
        }
        u = access.zero_outside(d, u);
        if (x_norm_.present()) u_sums.add(u, u);
      }
      if (HWY_LIKELY(y_sum_ != nullptr)) {
        v = hn::MulAdd(b, y_branch, hn::Mul(v, y_skip));
        access.store(v, d, v_row_ + i);
      }
      v = access.zero_outside(d, v);
      if (y_norm_.present()) v_sums.add(v, v);
    });
    if (x_norm_.present()) x_norm_.set_statistics(u_sums.total(), cols_);
    if (y_norm_.present()) y_norm_.set_statistics(v_sums.total(), cols_);
  }

  SIAMESE_ROW_PASS void merge() {
    const Floats d;
    const float* const u_row = x_sum_ == nullptr ? x_ : u_row_;
    const float* const v_row = y_sum_ == nullptr ? y_ : v_row_;
    const auto scale = hn::Set(d, input_scale_);
    RowSums<kLayer> sums;
    for_each_vector(0, cols_, [&](int64_t i, auto access) HWY_ATTR {
      prefetch(kAhead + i, branch_);
      prefetch_all(kAhead + i, y_);
      if constexpr (kTwo) prefetch_all(kAhead + i, x_);
      // All loads before the first store: rows of different arrays often stand at the same place in their pages, and
      // a load right after a store at such a place waits for it.
      const auto v = access.load(d, v_row + i);
      const auto u = kTwo ? access.load(d, u_row + i) : v;
      auto merged = y_norm_.present() ? y_norm_.affine(access, i, y_norm_.normalised(v)) : v;
      if constexpr (kTwo) {
        const auto x = x_norm_.present() ? x_norm_.affine(access, i, x_norm_.normalised(u)) : u;
        merged = hn::Add(scales_x() ? hn::Mul(x, access.load(d, x_scale_ + i)) : x, merged);
        if (HWY_LIKELY(x_sum_ != nullptr)) store_result(access, u_past_cache_, u, x_sum_ + i);
        if (x_norm_.present()) store_result(access, past_cache_, x, x_out_ + i);
      }
      if (HWY_LIKELY(y_sum_ != nullptr)) store_result(access, past_cache_, v, y_sum_ + i);
      if (input_norm_.present()) {
        access.store(merged, d, merged_ + i);
        merged = access.zero_outside(d, merged);
        sums.add(merged, merged);
      } else {
        access.store(hn::Mul(merged, scale), d, input_ + i);
      }
    });
    if (input_norm_.present()) input_norm_.set_statistics(sums.total(), cols_);
  }

  SIAMESE_ROW_PASS void normalise_merge() {
    const Floats d;
    const auto scale = hn::Set(d, input_scale_);
    for_each_vector(0, cols_, [&](int64_t i, auto access) HWY_ATTR {
      const auto normed = input_norm_.normalised(access.load(d, merged_ + i));
      access.store(hn::Mul(input_norm_.affine(access, i, normed), scale), d, input_ + i);
    });
  }

  // b; 0 without a branch.
  template <class Access>
  SIAMESE_ROW_PASS FloatVector normed_branch(Access access, int64_t i) const {
    if (HWY_UNLIKELY(branch_ == nullptr)) return hn::Zero(Floats());
    auto b = access.load(Floats(), branch_ + i);
    if (branch_norm_.present()) b = branch_norm_.affine(access, i, branch_norm_.normalised(b));
    if (HWY_UNLIKELY(gate_ != nullptr)) b = hn::Mul(b, access.load(Floats(), gate_ + i));
    return b;
  }

  HWY_INLINE bool scales_x() const {
    return Known::x_scale == Presence::unknown ? x_scale_ != nullptr : Known::x_scale == Presence::yes;
  }

  // Behind the rows of m and U stands a gain for norms without one.
  HWY_INLINE const float* ones_in(const float* scratch) const { return scratch + 2 * cols_; }

  HWY_INLINE bool stores_past_cache(const float* rows) const {
    return rows == nullptr || can_store_past_cache(rows, cols_);
  }

  int64_t cols_;
  float x_branch_, y_branch_, y_skip_, input_scale_;
  const float* x_scale_;
  const float* gate_;
  RowNormAt<kLayer, Known::branch> branch_norm_;
  RowNormAt<kLayer, Known::x> x_norm_;
  RowNormAt<kLayer, Known::y> y_norm_;
  RowNormAt<kLayer, Known::input> input_norm_;
  const T* branch_;
  const float* x_;
  const float* y_;
  float* x_sum_;
  float* y_sum_;
  float* x_out_;
  T* input_;
  float* merged_;  // m on the way to I
  // Streams are next read after a whole branch. So they wait near by and are written at their last reading; large ones
  // past the caches, where a plain store would first fetch from memory what it overwrites, and U beside a normalised X,
  // which only backward reads, always. The input is what the branch reads at once.
  bool past_cache_, u_past_cache_;
  float* u_row_;
  float* v_row_;
};

// Everything is inlined: a loop's running sums and the pointers above would otherwise live in memory.
template <bool kLayer, bool kTwo, class Known, class T>
HWY_FLATTEN void forward_row(const Junction& junction, const JunctionRowsOf<T>& rows, int64_t row) {
  ForwardRow<kLayer, kTwo, Known, T>(junction, rows, row).run();
}

}  // namespace siamese::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
