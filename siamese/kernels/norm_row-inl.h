// A norm of a whole row, in place, forward and backward; included once per SIMD target.
#include "siamese/kernels/row_steps-inl.h"

#if defined(SIAMESE_KERNELS_NORM_ROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SIAMESE_KERNELS_NORM_ROW_INL_H_
#undef SIAMESE_KERNELS_NORM_ROW_INL_H_
#else
#define SIAMESE_KERNELS_NORM_ROW_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace siamese::kernels::HWY_NAMESPACE {

// A row in another type: to bfloat16, or a float again.
template <class From, class To>
HWY_INLINE void convert_row(const From* from, int64_t cols, To* to) {
  const Floats d;
  for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR { access.store(access.load(d, from + i), d, to + i); });
}

// A norm that may lack anything: where a row's other steps take longer than asking.
template <bool kLayer>
using AnyRowNorm = RowNormAt<kLayer, Presence::unknown, /*kAnyAffine=*/true>;

// The row becomes N(row).
template <bool kLayer>
HWY_INLINE void norm_row(AnyRowNorm<kLayer>& norm, int64_t cols, float* row) {
  const Floats d;
  RowSums<kLayer> sums;
  for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR {
    const auto value = access.load(d, row + i);
    sums.add(value, value);
  });
  norm.set_statistics(sums.total(), cols);
  for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR {
    access.store(norm.affine(access, i, norm.normalised(access.load(d, row + i))), d, row + i);
  });
}

// The gradient of the row before its norm, in `before`, which comes in as that row itself.
template <bool kLayer>
HWY_INLINE void norm_row_backward(AnyRowNorm<kLayer>& norm, const float* dy, const RowNormGradient& gradient,
                                  int64_t cols, float* before, float* gained) {
  const Floats d;
  norm.load_statistics();
  const AffineGradient<kLayer, true> gradients(gradient, gained);  // overwritten below
  RowSums<kLayer> sums;
  for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR {
    const auto dy_i = access.load(d, dy + i);
    const auto normed = access.zero_outside(d, norm.normalised(access.load(d, before + i)));
    const auto g = hn::Mul(dy_i, norm.affine_at(access, i).gain);
    gradients.store(access, i, gradients.load(access, i), dy_i, normed);
    access.store(normed, d, before + i);
    access.store(g, d, gained + i);
    sums.add(g, normed);
  });
  const NormMeans means(sums.total(), cols);
  for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR {
    const auto normed = access.load(d, before + i);
    const auto g = access.load(d, gained + i);
    access.store(norm.input_gradient(g, normed, means), d, before + i);
  });
}

}  // namespace siamese::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
