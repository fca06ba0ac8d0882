#include "siamese/kernels/rope.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "siamese/kernels/rope.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include "siamese/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace siamese::kernels::HWY_NAMESPACE {
namespace rope_rows {

template <bool kBack>
HWY_INLINE void rotate(const RopeShape& shape, const float* x, const float* cos, const float* sin, float* y,
                       int64_t row_begin, int64_t row_end) {
  const Floats d;
  const int64_t half = shape.half;
  for (int64_t row = row_begin; row < row_end; ++row) {
    const int64_t angles = row % shape.tokens * half;
    for (int64_t head = 0; head < shape.heads; ++head) {
      const int64_t at = (row * shape.heads + head) * 2 * half;
      for_each_vector(0, half, [&](int64_t i, auto access) HWY_ATTR {
        const auto first = access.load(d, x + at + i);
        const auto second = access.load(d, x + at + half + i);
        const auto c = access.load(d, cos + angles + i);
        const auto angle_sin = access.load(d, sin + angles + i);
        const auto s = kBack ? hn::Neg(angle_sin) : angle_sin;
        access.store(hn::NegMulAdd(second, s, hn::Mul(first, c)), d, y + at + i);
        access.store(hn::MulAdd(first, s, hn::Mul(second, c)), d, y + at + half + i);
      });
    }
  }
}

}  // namespace rope_rows

void rope_forward(const RopeShape& shape, const float* x, const float* cos, const float* sin, float* y,
                  int64_t row_begin, int64_t row_end) {
  rope_rows::rotate<false>(shape, x, cos, sin, y, row_begin, row_end);
}

void rope_backward(const RopeShape& shape, const float* dy, const float* cos, const float* sin, float* dx,
                   int64_t row_begin, int64_t row_end) {
  rope_rows::rotate<true>(shape, dy, cos, sin, dx, row_begin, row_end);
}

}  // namespace siamese::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace siamese::kernels {

HWY_EXPORT(rope_forward);
HWY_EXPORT(rope_backward);

void rope_forward(const RopeShape& shape, const float* x, const float* cos, const float* sin, float* y,
                  int64_t row_begin, int64_t row_end) {
  HWY_DYNAMIC_DISPATCH(rope_forward)(shape, x, cos, sin, y, row_begin, row_end);
}

void rope_backward(const RopeShape& shape, const float* dy, const float* cos, const float* sin, float* dx,
                   int64_t row_begin, int64_t row_end) {
  HWY_DYNAMIC_DISPATCH(rope_backward)(shape, dy, cos, sin, dx, row_begin, row_end);
}

}  // namespace siamese::kernels
#endif  // HWY_ONCE
