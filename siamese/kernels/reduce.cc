#include "siamese/kernels/reduce.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "siamese/kernels/reduce.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include "siamese/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace siamese::kernels::HWY_NAMESPACE {

double sum(const float* x, int64_t begin, int64_t end) {
  return sum_in_double(begin, end, [&](auto running, int64_t i, auto access) HWY_ATTR {
    return hn::Add(running, hn::PromoteTo(Doubles(), access.load(FloatsOfDoubles(), x + i)));
  });
}

double sum_squares(const float* x, int64_t begin, int64_t end) {
  return sum_in_double(begin, end, [&](auto running, int64_t i, auto access) HWY_ATTR {
    const auto value = hn::PromoteTo(Doubles(), access.load(FloatsOfDoubles(), x + i));
    return hn::MulAdd(value, value, running);
  });
}

}  // namespace siamese::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace siamese::kernels {

HWY_EXPORT(sum);
HWY_EXPORT(sum_squares);

double sum(const float* x, int64_t begin, int64_t end) { return HWY_DYNAMIC_DISPATCH(sum)(x, begin, end); }

double sum_squares(const float* x, int64_t begin, int64_t end) {
  return HWY_DYNAMIC_DISPATCH(sum_squares)(x, begin, end);
}

}  // namespace siamese::kernels
#endif  // HWY_ONCE
