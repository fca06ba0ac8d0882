// Floats rounded to lanes of two bfloat16, as MultiplyAddPairs takes them (kernels/tile_product-inl.h); included once
// per SIMD target. Only where has_bfloat16_products(): by two instructions that Highway does not know yet.
#include "siamese/kernels/tile_product-inl.h"

#if defined(SIAMESE_KERNELS_BFLOAT16_PAIRS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SIAMESE_KERNELS_BFLOAT16_PAIRS_INL_H_
#undef SIAMESE_KERNELS_BFLOAT16_PAIRS_INL_H_
#else
#define SIAMESE_KERNELS_BFLOAT16_PAIRS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace siamese::kernels::HWY_NAMESPACE {

#if SIAMESE_KERNELS_BFLOAT16_PAIRS

// The numbers of `first`, then those of `second`.
HWY_INLINE FloatVector rounded_in_order(FloatVector first, FloatVector second) {
  FloatVector made;
  asm("vcvtne2ps2bf16 %2, %1, %0" : "=v"(made.raw) : "v"(second.raw), "v"(first.raw));  // NOLINT
  return made;
}

// A row of `vectors` vectors as half as many, in its own place; a zero vector beside the last of an odd count.
HWY_INLINE void pack_neighbours(float* row, int64_t vectors) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < vectors; i += 2) {
    const auto first = hn::LoadU(d, row + i * lanes);
    const auto second = i + 1 < vectors ? hn::LoadU(d, row + (i + 1) * lanes) : hn::Zero(d);
    hn::StoreU(rounded_in_order(first, second), d, row + i / 2 * lanes);
  }
}

// Two rows lane by lane, the second in the upper halves; null: zeros. `to` may be the first.
HWY_INLINE void pack_rows_of_two(const float* first, const float* second, int64_t vectors, float* to) {
  const Floats d;
  const hn::RebindToUnsigned<Floats> du;
  const hn::Repartition<uint16_t, Floats> halves;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < vectors * lanes; i += lanes) {
    const auto lower = hn::LoadU(d, first + i);
    const auto upper = second == nullptr ? hn::Zero(d) : hn::LoadU(d, second + i);
    const auto both = hn::BitCast(halves, rounded_in_order(lower, upper));
    const auto low = hn::PromoteTo(du, hn::LowerHalf(both));
    const auto high = hn::ShiftLeft<16>(hn::PromoteTo(du, hn::UpperHalf(hn::Half<decltype(halves)>(), both)));
    hn::StoreU(hn::BitCast(d, hn::Or(low, high)), d, to + i);
  }
}

#endif

}  // namespace siamese::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
