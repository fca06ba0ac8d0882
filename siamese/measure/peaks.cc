#include "siamese/measure/peaks.h"

#include <array>
#include <utility>

#include "siamese/base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "siamese/measure/peaks.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include "siamese/kernels/simd.h"
#include "siamese/kernels/tile_product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace siamese::measure::HWY_NAMESPACE {

using namespace kernels::HWY_NAMESPACE;  // the loops of vectors-inl.h

// Twelve running values: more than the latency of a multiply-add times two units, fewer than AVX2's registers.
double multiply_add_rounds(int64_t rounds, float* sink) {
  const Floats d;
  const auto factor = hn::Set(d, 0.5f);
  const auto term = hn::Set(d, 0.25f);
  auto a0 = hn::Set(d, 0.0f), a1 = hn::Set(d, 0.1f), a2 = hn::Set(d, 0.2f), a3 = hn::Set(d, 0.3f);
  auto b0 = hn::Set(d, 0.4f), b1 = hn::Set(d, 0.5f), b2 = hn::Set(d, 0.6f), b3 = hn::Set(d, 0.7f);
  auto c0 = hn::Set(d, 0.8f), c1 = hn::Set(d, 0.9f), c2 = hn::Set(d, 1.0f), c3 = hn::Set(d, 1.1f);
  for (int64_t round = 0; round < rounds; ++round) {
    a0 = hn::MulAdd(a0, factor, term);
    a1 = hn::MulAdd(a1, factor, term);
    a2 = hn::MulAdd(a2, factor, term);
    a3 = hn::MulAdd(a3, factor, term);
    b0 = hn::MulAdd(b0, factor, term);
    b1 = hn::MulAdd(b1, factor, term);
    b2 = hn::MulAdd(b2, factor, term);
    b3 = hn::MulAdd(b3, factor, term);
    c0 = hn::MulAdd(c0, factor, term);
    c1 = hn::MulAdd(c1, factor, term);
    c2 = hn::MulAdd(c2, factor, term);
    c3 = hn::MulAdd(c3, factor, term);
  }
  const auto a = hn::Add(hn::Add(a0, a1), hn::Add(a2, a3));
  const auto b = hn::Add(hn::Add(b0, b1), hn::Add(b2, b3));
  const auto c = hn::Add(hn::Add(c0, c1), hn::Add(c2, c3));
  *sink = hn::GetLane(hn::SumOfLanes(d, hn::Add(a, hn::Add(b, c))));
  return static_cast<double>(rounds) * 12 * 2 * static_cast<double>(hn::Lanes(d));
}

double multiply_add_pair_rounds(int64_t rounds, float* sink) {
#if SIAMESE_KERNELS_BFLOAT16_PAIRS
  constexpr int kValues = 12;
  const Floats d;
  const MultiplyAddPairs multiply_add;
  const auto factor = hn::BitCast(d, hn::Set(hn::RebindToUnsigned<Floats>(), 0x3E803E80U));  // 1/4 and 1/4
  hn::Vec<Floats> values[kValues];
  for (int i = 0; i < kValues; ++i) values[i] = hn::Set(d, 0.1f * static_cast<float>(i));
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kValues; ++i) values[i] = multiply_add(factor, factor, values[i]);
  }
  auto sum = values[0];
  for (int i = 1; i < kValues; ++i) sum = hn::Add(sum, values[i]);
  *sink = hn::GetLane(hn::SumOfLanes(d, sum));
  return static_cast<double>(rounds) * kValues * 4 * static_cast<double>(hn::Lanes(d));
#else
  (void)rounds;
  *sink = 0;
  return 0;
#endif
}

template <int kReads, int kWrites>
class ArrayLoop {
 public:
  ArrayLoop(const float* const* in, float* const* out) {
    for (int i = 0; i < kReads; ++i) in_[i] = in[i];
    for (int i = 0; i < kWrites; ++i) out_[i] = out[i];
  }

  template <class Access>
  HWY_INLINE hn::Vec<Floats> value(int64_t i, Access access) const {
    const Floats d;
    if constexpr (kReads == 0) {
      return hn::Set(d, 1.0f);
    } else {
      auto v = access.load(d, in_[0] + i);
      for (int r = 1; r < kReads; ++r) v = hn::MulAdd(v, hn::Set(d, 0.5f), access.load(d, in_[r] + i));
      return access.zero_outside(d, v);
    }
  }

  template <class Access>
  HWY_INLINE void store(int64_t i, Access access) const {
    const auto v = value(i, access);
    for (int w = 0; w < kWrites; ++w) access.store(v, Floats(), out_[w] + i);
  }

 private:
  const float* in_[kReads + 1];
  float* out_[kWrites + 1];
};

template <int kReads, int kWrites>
float loop_of(const float* const* in, float* const* out, int64_t begin, int64_t end) {
  const Floats d;
  const ArrayLoop<kReads, kWrites> loop(in, out);
  if constexpr (kWrites > 0) {
    for_each_vector(begin, end, [&](int64_t i, auto access) HWY_ATTR { loop.store(i, access); });
    return 0;
  } else if constexpr (kReads == 0) {
    return 0;
  } else {
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const WholeVector whole;
    auto sum0 = hn::Zero(d), sum1 = hn::Zero(d), sum2 = hn::Zero(d), sum3 = hn::Zero(d);
    int64_t i = begin;
    for (; i + 4 * lanes <= end; i += 4 * lanes) {
      sum0 = hn::Add(sum0, loop.value(i, whole));
      sum1 = hn::Add(sum1, loop.value(i + lanes, whole));
      sum2 = hn::Add(sum2, loop.value(i + 2 * lanes, whole));
      sum3 = hn::Add(sum3, loop.value(i + 3 * lanes, whole));
    }
    for_each_vector(i, end, [&](int64_t at, auto access) HWY_ATTR { sum0 = hn::Add(sum0, loop.value(at, access)); });
    return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3))));
  }
}

using LoopFunction = float (*)(const float* const*, float* const*, int64_t, int64_t);
inline constexpr int kColumns = kMaxWrites + 1;

template <int... kIndex>
constexpr auto loop_functions(std::integer_sequence<int, kIndex...>) {
  return std::array<LoopFunction, sizeof...(kIndex)>{loop_of<kIndex / kColumns, kIndex % kColumns>...};
}

float memory_loop(const float* const* in, int reads, float* const* out, int writes, int64_t begin, int64_t end) {
  static constexpr auto kFunctions = loop_functions(std::make_integer_sequence<int, (kMaxReads + 1) * kColumns>());
  return kFunctions[static_cast<size_t>(reads * kColumns + writes)](in, out, begin, end);
}

}  // namespace siamese::measure::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace siamese::measure {

HWY_EXPORT(multiply_add_rounds);
HWY_EXPORT(multiply_add_pair_rounds);
HWY_EXPORT(memory_loop);

double multiply_add_rounds(int64_t rounds, float* sink) {
  return HWY_DYNAMIC_DISPATCH(multiply_add_rounds)(rounds, sink);
}

double multiply_add_pair_rounds(int64_t rounds, float* sink) {
  if (!kernels::has_bfloat16_products()) return 0;
  return HWY_DYNAMIC_DISPATCH(multiply_add_pair_rounds)(rounds, sink);
}

float memory_loop(const float* const* in, int reads, float* const* out, int writes, int64_t begin, int64_t end) {
  SIAMESE_INVARIANT(reads >= 0 && reads <= kMaxReads && writes >= 0 && writes <= kMaxWrites);
  return HWY_DYNAMIC_DISPATCH(memory_loop)(in, reads, out, writes, begin, end);
}

}  // namespace siamese::measure
#endif  // HWY_ONCE
