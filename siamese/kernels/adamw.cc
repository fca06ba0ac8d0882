#include "siamese/kernels/adamw.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "siamese/kernels/adamw.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include "siamese/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace siamese::kernels::HWY_NAMESPACE {

void adamw_update(const AdamWStep& step, const float* g, float* p, float* m, float* v, int64_t begin, int64_t end) {
  const Floats d;
  const auto everywhere = [&](double value) HWY_ATTR { return hn::Set(d, static_cast<float>(value)); };
  const auto clip = everywhere(step.clip_scale);
  const auto keep = everywhere(1 - step.lr * step.weight_decay);
  const auto keep_m = everywhere(step.beta1);
  const auto keep_v = everywhere(step.beta2);
  const auto take_m = everywhere(1 - step.beta1);
  const auto take_v = everywhere(1 - step.beta2);
  const auto rate = everywhere(step.lr / step.bias1);
  const auto unbias_root = everywhere(1 / std::sqrt(step.bias2));
  const auto eps = everywhere(step.eps);
  for_each_vector(begin, end, [&](int64_t i, auto access) HWY_ATTR {
    const auto grad = hn::Mul(access.load(d, g + i), clip);
    const auto first = hn::MulAdd(keep_m, access.load(d, m + i), hn::Mul(take_m, grad));
    const auto second = hn::MulAdd(keep_v, access.load(d, v + i), hn::Mul(hn::Mul(take_v, grad), grad));
    const auto denominator = hn::MulAdd(hn::Sqrt(second), unbias_root, eps);
    const auto decayed = hn::Mul(access.load(d, p + i), keep);
    access.store(hn::NegMulAdd(rate, hn::Div(first, denominator), decayed), d, p + i);
    access.store(first, d, m + i);
    access.store(second, d, v + i);
  });
}

}  // namespace siamese::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace siamese::kernels {

HWY_EXPORT(adamw_update);

void adamw_update(const AdamWStep& step, const float* g, float* p, float* m, float* v, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(adamw_update)(step, g, p, m, v, begin, end);
}

}  // namespace siamese::kernels
#endif  // HWY_ONCE
