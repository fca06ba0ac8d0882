#include "siamese/kernels/row_product.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "siamese/kernels/row_product.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include "siamese/kernels/row_product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace siamese::kernels::HWY_NAMESPACE {

void row_product_float(const float* x, const float* w, int64_t w_stride, float* y, int64_t rows, int64_t in,
                       int64_t out, int64_t out_begin, int64_t out_end) {
  dot_products(x, rows, in, w + out_begin * w_stride, w_stride, y + out_begin, out, out_end - out_begin);
}

void row_product_bf16(const float* x, const Bfloat16* w, int64_t w_stride, float* y, int64_t rows, int64_t in,
                      int64_t out, int64_t out_begin, int64_t out_end) {
  dot_products(x, rows, in, w + out_begin * w_stride, w_stride, y + out_begin, out, out_end - out_begin);
}

}  // namespace siamese::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace siamese::kernels {

HWY_EXPORT(row_product_float);
HWY_EXPORT(row_product_bf16);

void row_product(const float* x, const float* w, int64_t w_stride, float* y, int64_t rows, int64_t in, int64_t out,
                 int64_t out_begin, int64_t out_end) {
  HWY_DYNAMIC_DISPATCH(row_product_float)(x, w, w_stride, y, rows, in, out, out_begin, out_end);
}

void row_product(const float* x, const Bfloat16* w, int64_t w_stride, float* y, int64_t rows, int64_t in, int64_t out,
                 int64_t out_begin, int64_t out_end) {
  HWY_DYNAMIC_DISPATCH(row_product_bf16)(x, w, w_stride, y, rows, in, out, out_begin, out_end);
}

}  // namespace siamese::kernels
#endif  // HWY_ONCE
