// The loops every kernel is made of, included once per SIMD target: `for_each_vector` (element-wise) and
// `sum_in_double` (statistics; `two_sums_in_double` for two at once). A loop body is written once and called with an
// access object that reads and writes a whole vector or the first few lanes of one, so the end of a row gets the same
// arithmetic as its middle. Arrays are floats, or bfloat16, which become floats as they are read and are rounded as
// they are written (kernels/bfloat16.h).
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"

#include "siamese/kernels/bfloat16.h"
#include "siamese/kernels/past_cache.h"

#if defined(SIAMESE_KERNELS_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SIAMESE_KERNELS_VECTORS_INL_H_
#undef SIAMESE_KERNELS_VECTORS_INL_H_
#else
#define SIAMESE_KERNELS_VECTORS_INL_H_
#endif

// Masked memory operations of floats must not touch what lies outside the mask; AVX2's do not, though Highway has to
// warn of them for its smaller lane types.
#define SIAMESE_KERNELS_SAFE_MASKED_FLOATS (!HWY_MEM_OPS_MIGHT_FAULT || HWY_TARGET == HWY_AVX2)

HWY_BEFORE_NAMESPACE();
namespace siamese::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Doubles = hn::ScalableTag<double>;
using FloatsOfDoubles = hn::Rebind<float, Doubles>;  // as many floats as a vector holds doubles

// Sixteen bits each, as many as D has floats.
template <class D>
using HalfBits = hn::Rebind<uint16_t, D>;

template <class D>
HWY_INLINE hn::Vec<D> widened(D d, hn::Vec<HalfBits<D>> bits) {
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(hn::RebindToUnsigned<D>(), bits)));
}

// To the nearest, ties to even: half a unit of the last digit less one bit, and that bit where the digit is odd. A NaN
// would become an infinity or a zero that way: it gets the digit that says so.
template <class D>
HWY_INLINE hn::Vec<HalfBits<D>> rounded(D d, hn::Vec<D> values) {
  const hn::RebindToUnsigned<D> du;
  const auto bits = hn::BitCast(du, values);
  const auto upper = hn::ShiftRight<16>(bits);
  const auto odd = hn::And(upper, hn::Set(du, 1));
  const auto near = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7FFF))));
  const auto nan = hn::BitCast(d, hn::Or(upper, hn::Set(du, 0x40)));
  const auto chosen = hn::IfThenElse(hn::IsNaN(values), nan, hn::BitCast(d, near));
  return hn::DemoteTo(HalfBits<D>(), hn::BitCast(hn::RebindToSigned<D>(), chosen));
}

struct WholeVector {
  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, const float* from) const {
    return hn::LoadU(d, from);
  }
  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, const Bfloat16* from) const {
    return widened(d, hn::LoadU(HalfBits<D>(), &from->bits));
  }
  template <class D>
  HWY_INLINE void store(hn::Vec<D> values, D d, Bfloat16* to) const {
    hn::StoreU(rounded(d, values), HalfBits<D>(), &to->bits);
  }
  template <class D>
  HWY_INLINE void store(hn::Vec<D> values, D d, float* to) const {
    hn::StoreU(values, d, to);
  }
  template <class D>
  HWY_INLINE hn::Vec<D> zero_outside(D, hn::Vec<D> values) const {
    return values;
  }
};

// The first `count` lanes; the others load as zero and are not stored.
struct PartVector {
  size_t count;

  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, const float* from) const {
#if SIAMESE_KERNELS_SAFE_MASKED_FLOATS
    return hn::MaskedLoad(hn::FirstN(d, count), d, from);
#else
    HWY_ALIGN float lanes[hn::MaxLanes(D())] = {};
    for (size_t i = 0; i < count; ++i) lanes[i] = from[i];
    return hn::Load(d, lanes);
#endif
  }
  template <class D>
  HWY_INLINE void store(hn::Vec<D> values, D d, float* to) const {
#if SIAMESE_KERNELS_SAFE_MASKED_FLOATS
    hn::BlendedStore(values, hn::FirstN(d, count), d, to);
#else
    HWY_ALIGN float lanes[hn::MaxLanes(D())];
    hn::Store(values, d, lanes);
    for (size_t i = 0; i < count; ++i) to[i] = lanes[i];
#endif
  }
  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, const Bfloat16* from) const {
    HWY_ALIGN uint16_t lanes[hn::MaxLanes(D())] = {};
    std::memcpy(lanes, from, count * sizeof(uint16_t));
    return widened(d, hn::Load(HalfBits<D>(), lanes));
  }
  template <class D>
  HWY_INLINE void store(hn::Vec<D> values, D d, Bfloat16* to) const {
    HWY_ALIGN uint16_t lanes[hn::MaxLanes(D())];
    hn::Store(rounded(d, values), HalfBits<D>(), lanes);
    std::memcpy(to, lanes, count * sizeof(uint16_t));
  }
  template <class D>
  HWY_INLINE hn::Vec<D> zero_outside(D d, hn::Vec<D> values) const {
    return hn::IfThenElseZero(hn::FirstN(d, count), values);
  }
};

// A result, past the caches where can_store_past_cache allows it.
template <class Access>
HWY_INLINE void store_result(Access access, bool past_cache, hn::Vec<Floats> values, float* to) {
  const Floats d;
  if (past_cache) return hn::Stream(values, d, to);
  access.store(values, d, to);
}
template <class Access>
HWY_INLINE void store_result(Access access, bool, hn::Vec<Floats> values, Bfloat16* to) {
  access.store(values, Floats(), to);
}

// The row that begins `at` floats into an array; null when there is no array.
template <class T>
HWY_INLINE T* row_or_null(T* array, int64_t at) {
  return array == nullptr ? nullptr : array + at;
}

// The floats at `from`, or `otherwise` in every lane when there is no array.
template <class Access, class D>
HWY_INLINE hn::Vec<D> load_or(Access access, D d, const float* from, int64_t i, float otherwise) {
  return from == nullptr ? hn::Set(d, otherwise) : access.load(d, from + i);
}

// body(i, access) for i = begin, begin + lanes, ...: the last access may be a part.
template <class Body>
HWY_INLINE void for_each_vector(int64_t begin, int64_t end, const Body& body) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(Floats()));
  int64_t i = begin;
  for (; i + lanes <= end; i += lanes) body(i, WholeVector());
  if (i < end) body(i, PartVector{static_cast<size_t>(end - i)});
}

// Prefetches the cache lines at rows + i (null: none): in a loop over a row, what the next loop will touch first. While
// a row is computed in cache no load misses that the hardware could run ahead of, and memory and arithmetic would take
// turns. Past the last row this prefetches what is never used, which is harmless. Into the second level: in the first,
// which the rows of a loop fill, it would drive out what is still needed.
template <class... Rows>
HWY_INLINE void prefetch(int64_t i, Rows... rows) {
  if (i % kLineFloats != 0) return;
  ((rows == nullptr ? void() : __builtin_prefetch(rows + i, 0, 2)), ...);
}

// The sum over [begin, end) of what add(sum, i, access) adds to its lanes. Doubles: a product of two floats is exact in
// them, a float row cannot overflow them, and the sum is the same at every SIMD level but for the last bits of a
// double. Four running sums hide the latency of the addition.
template <class Add>
HWY_INLINE double sum_in_double(int64_t begin, int64_t end, const Add& add) {
  const Doubles d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const WholeVector whole;
  auto sum0 = hn::Zero(d);
  auto sum1 = hn::Zero(d);
  auto sum2 = hn::Zero(d);
  auto sum3 = hn::Zero(d);
  int64_t i = begin;
  for (; i + 4 * lanes <= end; i += 4 * lanes) {
    sum0 = add(sum0, i, whole);
    sum1 = add(sum1, i + lanes, whole);
    sum2 = add(sum2, i + 2 * lanes, whole);
    sum3 = add(sum3, i + 3 * lanes, whole);
  }
  for (; i + lanes <= end; i += lanes) sum0 = add(sum0, i, whole);
  if (i < end) sum1 = add(sum1, i, PartVector{static_cast<size_t>(end - i)});
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3))));
}

struct TwoSums {
  double first;
  double second;
};

// Two such sums in one look at the data: add(first, second, i, access) adds to both. Twice two running sums.
template <class Add>
HWY_INLINE TwoSums two_sums_in_double(int64_t begin, int64_t end, const Add& add) {
  const Doubles d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const WholeVector whole;
  auto first0 = hn::Zero(d);
  auto first1 = hn::Zero(d);
  auto second0 = hn::Zero(d);
  auto second1 = hn::Zero(d);
  int64_t i = begin;
  for (; i + 2 * lanes <= end; i += 2 * lanes) {
    add(first0, second0, i, whole);
    add(first1, second1, i + lanes, whole);
  }
  for (; i + lanes <= end; i += lanes) add(first0, second0, i, whole);
  if (i < end) add(first1, second1, i, PartVector{static_cast<size_t>(end - i)});
  return {hn::GetLane(hn::SumOfLanes(d, hn::Add(first0, first1))),
          hn::GetLane(hn::SumOfLanes(d, hn::Add(second0, second1)))};
}

}  // namespace siamese::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
