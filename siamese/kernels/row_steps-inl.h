// The steps a junction's rows are made of, included once per SIMD target: sums over a row in double, the statistics of
// a norm from them, and a norm forward and backward by the vector.
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

// How far ahead of a loop a junction's arrays are prefetched, in elements: about a microsecond, more than memory takes
// to answer. Each array in one of a row's loops, so that memory has as much to do in each of them.
inline constexpr int64_t kAhead = 2048;

// As `prefetch`, where no row is null: loops that ask for each vector spend their time with that.
template <class... Rows>
HWY_INLINE void prefetch_all(int64_t i, Rows... rows) {
  if (hn::MaxLanes(Floats()) < kLineFloats && i % kLineFloats != 0) return;
  (__builtin_prefetch(rows + i, 0, 2), ...);
}

// Where a row waits as floats on its way to `row`: there, unless it is bfloat16.
HWY_INLINE float* as_floats(float* row, float*) { return row; }
HWY_INLINE float* as_floats(Bfloat16*, float* scratch) { return scratch; }

// Sums over a row of a (if kFirst) and of a b, in double, of vectors that are 0 outside the row.
template <bool kFirst>
class RowSums {
 public:
  HWY_INLINE RowSums()
      : first_(hn::Zero(Doubles())), products0_(hn::Zero(Doubles())), products1_(hn::Zero(Doubles())) {}

  HWY_INLINE void add(FloatVector a, FloatVector b) {
    const Doubles dd;
#if HWY_TARGET == HWY_SCALAR  // one lane has no halves
    const auto wide = hn::PromoteTo(dd, a);
    if constexpr (kFirst) first_ = hn::Add(first_, wide);
    products0_ = hn::MulAdd(wide, hn::PromoteTo(dd, b), products0_);
#else
    const hn::Half<Floats> half;
    const auto low = hn::PromoteTo(dd, hn::LowerHalf(half, a));
    const auto high = hn::PromoteTo(dd, hn::UpperHalf(half, a));
    if constexpr (kFirst) first_ = hn::Add(first_, hn::Add(low, high));
    products0_ = hn::MulAdd(low, hn::PromoteTo(dd, hn::LowerHalf(half, b)), products0_);
    products1_ = hn::MulAdd(high, hn::PromoteTo(dd, hn::UpperHalf(half, b)), products1_);
#endif
  }

  HWY_INLINE TwoSums total() const {
    const Doubles dd;
    return {kFirst ? hn::GetLane(hn::SumOfLanes(dd, first_)) : 0,
            hn::GetLane(hn::SumOfLanes(dd, hn::Add(products0_, products1_)))};
  }

 private:
  DoubleVector first_;
  DoubleVector products0_;
  DoubleVector products1_;
};

// The same sums for backward, in float but for the end. Their terms are products of rounded floats, near nothing that
// cancels or overflows (a normalised number is at most sqrt(cols)), and each lane adds only cols / lanes of them.
template <bool kFirst>
class GradientSums {
 public:
  HWY_INLINE GradientSums() : first_(hn::Zero(Floats())), products_(hn::Zero(Floats())) {}

  HWY_INLINE void add(FloatVector a, FloatVector b) {
    if constexpr (kFirst) first_ = hn::Add(first_, a);
    products_ = hn::MulAdd(a, b, products_);
  }

  HWY_INLINE TwoSums total() const { return {kFirst ? in_double(first_) : 0, in_double(products_)}; }

 private:
  HWY_INLINE static double in_double(FloatVector lanes) {
    RowSums<true> sums;
    sums.add(lanes, lanes);
    return sums.total().first;
  }

  FloatVector first_;
  FloatVector products_;
};

enum class Presence { no, yes, unknown };

// The means that a norm's backward subtracts: of g (LayerNorm only) and of g times the normalised row.
struct NormMeans {
  NormMeans() = default;
  NormMeans(const TwoSums& sums, int64_t cols)
      : g(static_cast<float>(sums.first / static_cast<double>(cols))),
        product(static_cast<float>(sums.second / static_cast<double>(cols))) {}
  float g = 0;
  float product = 0;
};

// Gain and bias of a norm at one vector of columns.
struct AffineVectors {
  FloatVector gain;
  FloatVector bias;
};

// One norm at one row, with everything it needs in itself: what lies in memory might be overwritten by any store of a
// float, as far as the compiler knows, and would be loaded again for each vector. kLayer: LayerNorm, else RMSNorm.
// kPresence: whether the norm is there, as far as that is known when compiling; a loop that asks for each vector is
// slow. The same goes for gain and bias: without a gain it is `ones`, and RMSNorm has no bias. With kAnyAffine those
// may be null as well, and it may.
template <bool kLayer, Presence kPresence, bool kAnyAffine = false>
class RowNormAt {
 public:
  RowNormAt(const RowNorm& norm, int64_t row, const float* ones)
      : present_(norm.present),
        gain_(norm.gain == nullptr ? ones : norm.gain),
        bias_(norm.bias),
        eps_(norm.eps),
        mean_(norm.mean),
        rstd_(norm.rstd) {
    if (!present()) return;
    if constexpr (kLayer) mean_ += row;
    rstd_ += row;
  }

  HWY_INLINE bool present() const { return kPresence == Presence::unknown ? present_ : kPresence == Presence::yes; }

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
    if (!present()) return;
    if constexpr (kLayer) row_mean_ = *mean_;
    row_rstd_ = *rstd_;
  }

  HWY_INLINE FloatVector normalised(FloatVector value) const {
    const Floats d;
    const auto scale = hn::Set(d, row_rstd_);
    if constexpr (kLayer) return hn::Mul(hn::Sub(value, hn::Set(d, row_mean_)), scale);
    return hn::Mul(value, scale);
  }

  template <class Access>
  HWY_INLINE AffineVectors affine_at(Access access, int64_t i) const {
    const Floats d;
    AffineVectors at{hn::Zero(d), hn::Zero(d)};
    if (!present()) return at;
    at.gain = kAnyAffine ? load_or(access, d, gain_, i, 1) : access.load(d, gain_ + i);
    if (has_bias()) at.bias = access.load(d, bias_ + i);
    return at;
  }

  // gain * normalised + bias
  HWY_INLINE FloatVector affine(const AffineVectors& at, FloatVector normed) const {
    normed = hn::Mul(normed, at.gain);
    if (has_bias()) normed = hn::Add(normed, at.bias);
    return normed;
  }
  template <class Access>
  HWY_INLINE FloatVector affine(Access access, int64_t i, FloatVector normed) const {
    return affine(affine_at(access, i), normed);
  }

  // rstd (g - mean(g) - normalised mean(g normalised)), the first mean for LayerNorm only.
  HWY_INLINE FloatVector input_gradient(FloatVector g, FloatVector normed, const NormMeans& means) const {
    const Floats d;
    auto inner = hn::NegMulAdd(normed, hn::Set(d, means.product), g);
    if constexpr (kLayer) inner = hn::Sub(inner, hn::Set(d, means.g));
    return hn::Mul(inner, hn::Set(d, row_rstd_));
  }

 private:
  HWY_INLINE bool has_bias() const { return (kLayer || kAnyAffine) && HWY_LIKELY(bias_ != nullptr); }

  bool present_;
  const float* gain_;
  const float* bias_;
  float eps_;
  float* mean_;
  float* rstd_;
  float row_mean_ = 0;
  float row_rstd_ = 1;
};

// Where the gradients of a norm's gain and bias are added up: dy normalised and dy.
template <bool kLayer, bool kAnyAffine = false>
class AffineGradient {
 public:
  // `unwanted`: where what is not wanted goes.
  AffineGradient(const RowNormGradient& to, float* unwanted)
      : gain_(to.gain == nullptr ? unwanted : to.gain), bias_(to.bias == nullptr ? unwanted : to.bias) {}

  template <class Access>
  HWY_INLINE AffineVectors load(Access access, int64_t i) const {
    const Floats d;
    return {access.load(d, gain_ + i), kLayer || kAnyAffine ? access.load(d, bias_ + i) : hn::Zero(d)};
  }

  // What was loaded, with this row added.
  template <class Access>
  HWY_INLINE void store(Access access, int64_t i, const AffineVectors& before, FloatVector dy,
                        FloatVector normed) const {
    const Floats d;
    access.store(hn::MulAdd(dy, normed, before.gain), d, gain_ + i);
    if constexpr (kLayer || kAnyAffine) access.store(hn::Add(dy, before.bias), d, bias_ + i);
  }

 private:
  float* gain_;
  float* bias_;
};

}  // namespace siamese::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
