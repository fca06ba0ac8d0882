// The steps a junction's row is made of, included once per SIMD target: sums over a row in double, the statistics of a
// norm from them, and a norm forward and backward by the vector.
#include "siamese/kernels/vectors-inl.h"

#if defined(SIAMESE_KERNELS_ROW_STEPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SIAMESE_KERNELS_ROW_STEPS_INL_H_
#undef SIAMESE_KERNELS_ROW_STEPS_INL_H_
#else
#define SIAMESE_KERNELS_ROW_STEPS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace siamese::kernels::HWY_NAMESPACE {

using FloatVector = hn::Vec<Floats>;
using DoubleVector = hn::Vec<Doubles>;

// Adds the lanes of a (if kFirst) and of a b to running sums in double. One lane has no halves.
template <bool kFirst>
HWY_INLINE void add_products(FloatVector a, FloatVector b, DoubleVector& first, DoubleVector& products0,
                             DoubleVector& products1) {
  const Doubles dd;
#if HWY_TARGET == HWY_SCALAR
  const auto wide = hn::PromoteTo(dd, a);
  if constexpr (kFirst) first = hn::Add(first, wide);
  products0 = hn::MulAdd(wide, hn::PromoteTo(dd, b), products0);
  (void)products1;
#else
  const hn::Half<Floats> half;
  const auto low = hn::PromoteTo(dd, hn::LowerHalf(half, a));
  const auto high = hn::PromoteTo(dd, hn::UpperHalf(half, a));
  if constexpr (kFirst) first = hn::Add(first, hn::Add(low, high));
  products0 = hn::MulAdd(low, hn::PromoteTo(dd, hn::LowerHalf(half, b)), products0);
  products1 = hn::MulAdd(high, hn::PromoteTo(dd, hn::UpperHalf(half, b)), products1);
#endif
}

// Sums over a row of a and of a b, in double; produce(i, access, a, b) sets both, 0 outside the access.
template <bool kFirst, class Produce>
HWY_INLINE TwoSums row_sums(int64_t cols, const Produce& produce) {
  const Doubles dd;
  auto first = hn::Zero(dd);
  auto products0 = hn::Zero(dd);
  auto products1 = hn::Zero(dd);
  for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR {
    FloatVector a;
    FloatVector b;
    produce(i, access, a, b);
    add_products<kFirst>(a, b, first, products0, products1);
  });
  return {kFirst ? hn::GetLane(hn::SumOfLanes(dd, first)) : 0,
          hn::GetLane(hn::SumOfLanes(dd, hn::Add(products0, products1)))};
}

// One norm at one row, with everything it needs in itself: what lies in memory might be overwritten by any store of a
// float, as far as the compiler knows, and would be loaded again for each vector. kLayer: LayerNorm, else RMSNorm.
template <bool kLayer>
class RowNormAt {
 public:
  RowNormAt(const RowNorm& norm, int64_t row)
      : present_(norm.present), gain_(norm.gain), bias_(norm.bias), eps_(norm.eps), mean_(norm.mean), rstd_(norm.rstd) {
    if (!present_) return;
    if constexpr (kLayer) mean_ += row;
    rstd_ += row;
  }

  bool present() const { return present_; }

  // From the sums of the row's elements and of their squares.
  HWY_INLINE void set_statistics(const TwoSums& sums, int64_t cols) {
    const auto count = static_cast<double>(cols);
    double variance = sums.second / count;
    if constexpr (kLayer) {
      const double mean = sums.first / count;
      *mean_ = static_cast<float>(mean);
      variance -= mean * mean;
    }
    *rstd_ = static_cast<float>(1 / std::sqrt(std::max(variance, 0.0) + static_cast<double>(eps_)));
    load_statistics();
  }

  // Of an earlier set_statistics.
  HWY_INLINE void load_statistics() {
    if (!present_) return;
    if constexpr (kLayer) row_mean_ = *mean_;
    row_rstd_ = *rstd_;
  }

  HWY_INLINE FloatVector normalised(FloatVector value) const {
    const Floats d;
    const auto scale = hn::Set(d, row_rstd_);
    if constexpr (kLayer) return hn::Mul(hn::Sub(value, hn::Set(d, row_mean_)), scale);
    return hn::Mul(value, scale);
  }

  // gain * normalised + bias
  template <class Access>
  HWY_INLINE FloatVector affine(Access access, int64_t i, FloatVector normed) const {
    const Floats d;
    const auto gained = gain_ == nullptr ? normed : hn::Mul(normed, access.load(d, gain_ + i));
    return bias_ == nullptr ? gained : hn::Add(gained, access.load(d, bias_ + i));
  }

  // dy gain: what the sums of backward are over.
  template <class Access>
  HWY_INLINE FloatVector gained(Access access, int64_t i, FloatVector dy) const {
    return gain_ == nullptr ? dy : hn::Mul(dy, access.load(Floats(), gain_ + i));
  }

  // Adds dy normalised to the gradient of the gain, dy to that of the bias.
  template <class Access>
  HWY_INLINE void add_gradient(Access access, int64_t i, FloatVector dy, FloatVector normed,
                               const RowNormGradient& to) const {
    const Floats d;
    if (to.gain != nullptr) access.store(hn::MulAdd(dy, normed, access.load(d, to.gain + i)), d, to.gain + i);
    if (to.bias != nullptr) access.store(hn::Add(dy, access.load(d, to.bias + i)), d, to.bias + i);
  }

  // rstd (g - mean(g) - normalised mean(g normalised)), the first mean for LayerNorm only.
  HWY_INLINE FloatVector input_gradient(FloatVector g, FloatVector normed, float mean_g, float mean_product) const {
    const Floats d;
    auto inner = hn::NegMulAdd(normed, hn::Set(d, mean_product), g);
    if constexpr (kLayer) inner = hn::Sub(inner, hn::Set(d, mean_g));
    return hn::Mul(inner, hn::Set(d, row_rstd_));
  }

 private:
  bool present_;
  const float* gain_;
  const float* bias_;
  float eps_;
  float* mean_;
  float* rstd_;
  float row_mean_ = 0;
  float row_rstd_ = 1;
};

}  // namespace siamese::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
