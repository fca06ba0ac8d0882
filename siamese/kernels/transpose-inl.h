// A matrix of floats, or of anything of their size, transposed; included once per SIMD target.
#include "siamese/kernels/vectors-inl.h"

#if defined(SIAMESE_KERNELS_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SIAMESE_KERNELS_TRANSPOSE_INL_H_
#undef SIAMESE_KERNELS_TRANSPOSE_INL_H_
#else
#define SIAMESE_KERNELS_TRANSPOSE_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace siamese::kernels::HWY_NAMESPACE {

// to[col][row] = from[row][col]; both have strides.
HWY_INLINE void transpose(const float* HWY_RESTRICT from, int64_t from_stride, int64_t rows, int64_t cols,
                          float* HWY_RESTRICT to, int64_t to_stride) {
  int64_t row = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::FixedTag<float, 4> d4;
  const hn::Repartition<double, decltype(d4)> d2;
  for (; row + 4 <= rows; row += 4) {
    const float* const in = from + row * from_stride;
    int64_t col = 0;
    for (; col + 4 <= cols; col += 4) {
      const auto r0 = hn::LoadU(d4, in + col);
      const auto r1 = hn::LoadU(d4, in + from_stride + col);
      const auto r2 = hn::LoadU(d4, in + 2 * from_stride + col);
      const auto r3 = hn::LoadU(d4, in + 3 * from_stride + col);
      const auto low01 = hn::BitCast(d2, hn::InterleaveLower(d4, r0, r1));
      const auto low23 = hn::BitCast(d2, hn::InterleaveLower(d4, r2, r3));
      const auto high01 = hn::BitCast(d2, hn::InterleaveUpper(d4, r0, r1));
      const auto high23 = hn::BitCast(d2, hn::InterleaveUpper(d4, r2, r3));
      float* const out = to + col * to_stride + row;
      hn::StoreU(hn::BitCast(d4, hn::InterleaveLower(d2, low01, low23)), d4, out);
      hn::StoreU(hn::BitCast(d4, hn::InterleaveUpper(d2, low01, low23)), d4, out + to_stride);
      hn::StoreU(hn::BitCast(d4, hn::InterleaveLower(d2, high01, high23)), d4, out + 2 * to_stride);
      hn::StoreU(hn::BitCast(d4, hn::InterleaveUpper(d2, high01, high23)), d4, out + 3 * to_stride);
    }
    for (; col < cols; ++col) {
      for (int64_t i = 0; i < 4; ++i) to[col * to_stride + row + i] = in[i * from_stride + col];
    }
  }
#endif
  for (; row < rows; ++row) {
    for (int64_t col = 0; col < cols; ++col) to[col * to_stride + row] = from[row * from_stride + col];
  }
}

}  // namespace siamese::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
