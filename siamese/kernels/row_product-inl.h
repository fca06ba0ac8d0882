// Dot products of a few rows with the rows of a matrix (kernels/row_product.h), included once per SIMD target.
#include "siamese/kernels/row_product.h"
#include "siamese/kernels/vectors-inl.h"

#if defined(SIAMESE_KERNELS_ROW_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SIAMESE_KERNELS_ROW_PRODUCT_INL_H_
#undef SIAMESE_KERNELS_ROW_PRODUCT_INL_H_
#else
#define SIAMESE_KERNELS_ROW_PRODUCT_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace siamese::kernels::HWY_NAMESPACE {

// Rows of x and of w whose products share the registers: 16 sums where there are 32 of them, 8 elsewhere.
inline constexpr int kDotRows = 4;
#if HWY_TARGET <= HWY_AVX3
inline constexpr int kDotSums = 16;
#else
inline constexpr int kDotSums = 8;
#endif

// y[r][o] for kRows rows of x and kCols rows of w. While they are read, the rows of w that lie `ahead` elements further
// are fetched: memory does not wait for the arithmetic, and no stream is long enough for the hardware to find it alone.
template <int kRows, int kCols, class Weight>
HWY_INLINE void dot_tile(const float* HWY_RESTRICT x, int64_t in, const Weight* HWY_RESTRICT w, int64_t w_stride,
                         int64_t ahead, float* HWY_RESTRICT y, int64_t y_stride) {
  const Floats d;
  hn::Vec<Floats> sums[kRows][kCols];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kCols; ++c) sums[r][c] = hn::Zero(d);
  }
  const auto step = [&](int64_t i, auto access) HWY_ATTR {
    hn::Vec<Floats> row[kRows];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) row[r] = access.load(d, x + r * in + i);
#pragma GCC unroll 8
    for (int c = 0; c < kCols; ++c) {
      const Weight* const at = w + c * w_stride + i;
      if (ahead != 0) __builtin_prefetch(at + ahead, 0, 2);
      const auto weights = access.load(Floats(), at);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) sums[r][c] = hn::MulAdd(row[r], weights, sums[r][c]);
    }
  };
  for_each_vector(0, in, step);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kCols; ++c) y[r * y_stride + c] = hn::GetLane(hn::SumOfLanes(d, sums[r][c]));
  }
}

// `cols` rows of w, in tiles as wide as the registers allow; the second time a row of w is read it is in cache.
template <int kRows, class Weight>
HWY_INLINE void dot_columns(const float* x, int64_t in, const Weight* w, int64_t w_stride, int64_t ahead, float* y,
                            int64_t y_stride, int64_t cols) {
  constexpr int kCols = HWY_MIN(kDotSums / kRows, kRowProductColumns);
  int64_t c = 0;
  for (; c + kCols <= cols; c += kCols) {
    dot_tile<kRows, kCols>(x, in, w + c * w_stride, w_stride, ahead, y + c, y_stride);
  }
  for (; c < cols; ++c) dot_tile<kRows, 1>(x, in, w + c * w_stride, w_stride, 0, y + c, y_stride);
}

// y [rows, cols], rows y_stride apart.
template <class Weight>
HWY_INLINE void dot_products(const float* x, int64_t rows, int64_t in, const Weight* w, int64_t w_stride, float* y,
                             int64_t y_stride, int64_t cols) {
  for (int64_t c = 0; c < cols; c += kRowProductColumns) {
    const int64_t width = HWY_MIN(kRowProductColumns, cols - c);
    const int64_t ahead = c + 2 * kRowProductColumns <= cols ? kRowProductColumns * w_stride : 0;
    const Weight* const panel = w + c * w_stride;
    int64_t r = 0;
    for (; r + kDotRows <= rows; r += kDotRows) {
      dot_columns<kDotRows>(x + r * in, in, panel, w_stride, r == 0 ? ahead : 0, y + r * y_stride + c, y_stride, width);
    }
    for (; r + 2 <= rows; r += 2) {
      dot_columns<2>(x + r * in, in, panel, w_stride, r == 0 ? ahead : 0, y + r * y_stride + c, y_stride, width);
    }
    if (r < rows) {
      dot_columns<1>(x + r * in, in, panel, w_stride, r == 0 ? ahead : 0, y + r * y_stride + c, y_stride, width);
    }
  }
}

}  // namespace siamese::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
