#include "siamese/kernels/modulate.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "siamese/kernels/modulate.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include "siamese/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace siamese::kernels::HWY_NAMESPACE {

template <bool kShift, class T>
void modulate_row(float one, const float* scale, const float* shift, const float* x, T* y, int64_t cols) {
  const Floats d;
  const auto ones = hn::Set(d, one);
  for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR {
    const auto factor = hn::Add(ones, access.load(d, scale + i));
    const auto value = access.load(d, x + i);
    if constexpr (kShift) {
      access.store(hn::MulAdd(value, factor, access.load(d, shift + i)), d, y + i);
    } else {
      access.store(hn::Mul(value, factor), d, y + i);
    }
  });
}

template <class T>
HWY_INLINE void forward_rows(const Modulation& by, const float* x, T* y, int64_t row_begin, int64_t row_end) {
  for (int64_t row = row_begin; row < row_end; ++row) {
    const int64_t sample = row / by.tokens;
    const float* const scale = by.scale + sample * by.scale_stride;
    if (by.shift == nullptr) {
      modulate_row<false>(by.one, scale, nullptr, x + row * by.cols, y + row * by.cols, by.cols);
    } else {
      const float* const shift = by.shift + sample * by.shift_stride;
      modulate_row<true>(by.one, scale, shift, x + row * by.cols, y + row * by.cols, by.cols);
    }
  }
}

// One token; the sums of the sample stay in cache between tokens.
template <bool kShift, class T>
void modulate_row_backward(float one, const float* scale, const T* dy, const float* x, float* dx, float* dscale,
                           float* dshift, int64_t col_begin, int64_t col_end) {
  const Floats d;
  const auto ones = hn::Set(d, one);
  for_each_vector(col_begin, col_end, [&](int64_t i, auto access) HWY_ATTR {
    const auto gradient = access.load(d, dy + i);
    access.store(hn::MulAdd(gradient, access.load(d, x + i), access.load(d, dscale + i)), d, dscale + i);
    if constexpr (kShift) access.store(hn::Add(gradient, access.load(d, dshift + i)), d, dshift + i);
    access.store(hn::Mul(gradient, hn::Add(ones, access.load(d, scale + i))), d, dx + i);
  });
}

template <class T>
HWY_INLINE void backward_columns(const Modulation& by, const T* dy, const float* x, float* dx, float* dscale,
                                 float* dshift, int64_t sample, int64_t col_begin, int64_t col_end) {
  const float* const scale = by.scale + sample * by.scale_stride;
  float* const to_scale = dscale + sample * by.cols;
  float* const to_shift = dshift == nullptr ? nullptr : dshift + sample * by.cols;
  std::fill(to_scale + col_begin, to_scale + col_end, 0.0F);
  if (to_shift != nullptr) std::fill(to_shift + col_begin, to_shift + col_end, 0.0F);
  for (int64_t token = 0; token < by.tokens; ++token) {
    const int64_t at = (sample * by.tokens + token) * by.cols;
    if (to_shift == nullptr) {
      modulate_row_backward<false>(by.one, scale, dy + at, x + at, dx + at, to_scale, nullptr, col_begin, col_end);
    } else {
      modulate_row_backward<true>(by.one, scale, dy + at, x + at, dx + at, to_scale, to_shift, col_begin, col_end);
    }
  }
}

void forward_to_floats(const Modulation& by, const float* x, float* y, int64_t row_begin, int64_t row_end) {
  forward_rows(by, x, y, row_begin, row_end);
}
void forward_to_bfloat16(const Modulation& by, const float* x, Bfloat16* y, int64_t row_begin, int64_t row_end) {
  forward_rows(by, x, y, row_begin, row_end);
}
void backward_of_floats(const Modulation& by, const float* dy, const float* x, float* dx, float* dscale, float* dshift,
                        int64_t sample, int64_t col_begin, int64_t col_end) {
  backward_columns(by, dy, x, dx, dscale, dshift, sample, col_begin, col_end);
}
void backward_of_bfloat16(const Modulation& by, const Bfloat16* dy, const float* x, float* dx, float* dscale,
                          float* dshift, int64_t sample, int64_t col_begin, int64_t col_end) {
  backward_columns(by, dy, x, dx, dscale, dshift, sample, col_begin, col_end);
}

}  // namespace siamese::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace siamese::kernels {

HWY_EXPORT(forward_to_floats);
HWY_EXPORT(forward_to_bfloat16);
HWY_EXPORT(backward_of_floats);
HWY_EXPORT(backward_of_bfloat16);

void modulate_forward(const Modulation& by, const float* x, float* y, int64_t row_begin, int64_t row_end) {
  HWY_DYNAMIC_DISPATCH(forward_to_floats)(by, x, y, row_begin, row_end);
}

void modulate_forward(const Modulation& by, const float* x, Bfloat16* y, int64_t row_begin, int64_t row_end) {
  HWY_DYNAMIC_DISPATCH(forward_to_bfloat16)(by, x, y, row_begin, row_end);
}

void modulate_backward(const Modulation& by, const float* dy, const float* x, float* dx, float* dscale, float* dshift,
                       int64_t sample, int64_t col_begin, int64_t col_end) {
  HWY_DYNAMIC_DISPATCH(backward_of_floats)(by, dy, x, dx, dscale, dshift, sample, col_begin, col_end);
}

void modulate_backward(const Modulation& by, const Bfloat16* dy, const float* x, float* dx, float* dscale,
                       float* dshift, int64_t sample, int64_t col_begin, int64_t col_end) {
  HWY_DYNAMIC_DISPATCH(backward_of_bfloat16)(by, dy, x, dx, dscale, dshift, sample, col_begin, col_end);
}

}  // namespace siamese::kernels
#endif  // HWY_ONCE
