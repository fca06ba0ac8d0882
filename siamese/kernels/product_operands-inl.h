// What products of our own read (kernels/tile_product-inl.h), included once per SIMD target: the kinds of numbers they
// multiply, and copies of matrices in the order in which a tile reads them. What is copied are floats, or lanes of two
// bfloat16 (Pairs), which one instruction multiplies and adds: a step of a sum then is two of its terms.
#include <algorithm>
#include <bit>
#include <cstring>

#include "siamese/kernels/tile_product-inl.h"

#if defined(SIAMESE_KERNELS_PRODUCT_OPERANDS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SIAMESE_KERNELS_PRODUCT_OPERANDS_INL_H_
#undef SIAMESE_KERNELS_PRODUCT_OPERANDS_INL_H_
#else
#define SIAMESE_KERNELS_PRODUCT_OPERANDS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace siamese::kernels::HWY_NAMESPACE {

HWY_INLINE int64_t parts_of(int64_t size, int64_t part) { return (size + part - 1) / part; }

template <class Kind>
HWY_INLINE int64_t steps_of(int64_t rows) {
  return parts_of(rows, Kind::kRows);
}

// The other row of a step; null where it has none.
template <class Kind, class T>
HWY_INLINE const T* second_row(const T* first, int64_t stride, int64_t step, int64_t rows) {
  return Kind::kRows == 2 && step * 2 + 1 < rows ? first + stride : nullptr;
}

// Floats as they are.
struct Singles {
  using Input = float;
  using Multiply = MultiplyAdd;
  static constexpr int64_t kRows = 1;  // terms of a step: rows of the operands of dy^T x
  template <class Access>
  static HWY_INLINE FloatVector load(Access access, const float* from, const float*) {
    return access.load(Floats(), from);
  }
  static HWY_INLINE float load(const float* from, const float*) { return *from; }
  static HWY_INLINE void copy_row(const float* from, int64_t count, float* to) {
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
  }
};

// bfloat16 as floats, for a CPU that has no products of them.
struct Widened {
  using Input = Bfloat16;
  using Multiply = MultiplyAdd;
  static constexpr int64_t kRows = 1;
  template <class Access>
  static HWY_INLINE FloatVector load(Access access, const Bfloat16* from, const Bfloat16*) {
    return access.load(Floats(), from);
  }
  static HWY_INLINE float load(const Bfloat16* from, const Bfloat16*) { return to_float(*from); }
  static HWY_INLINE void copy_row(const Bfloat16* from, int64_t count, float* to) {
    const Floats d;
    for_each_vector(0, count,
                    [&](int64_t i, auto access) HWY_ATTR { access.store(access.load(d, from + i), d, to + i); });
  }
};

#if SIAMESE_KERNELS_BFLOAT16_PAIRS
// Two rows in a lane, the second in its upper half; null: a row of zeros.
struct Pairs {
  using Input = Bfloat16;
  using Multiply = MultiplyAddPairs;
  static constexpr int64_t kRows = 2;
  template <class Access>
  static HWY_INLINE FloatVector load(Access access, const Bfloat16* first, const Bfloat16* second) {
    const Floats d;
    const hn::RebindToUnsigned<Floats> du;
    const auto low = hn::ShiftRight<16>(hn::BitCast(du, access.load(d, first)));
    if (second == nullptr) return hn::BitCast(d, low);
    return hn::BitCast(d, hn::Or(low, hn::BitCast(du, access.load(d, second))));
  }
  static HWY_INLINE float load(const Bfloat16* first, const Bfloat16* second) {
    const uint32_t high = second == nullptr ? 0 : second->bits;
    return std::bit_cast<float>(high << 16 | first->bits);
  }
  // Two neighbours in a lane, as they lie; a zero beside the last of an odd count.
  static HWY_INLINE void copy_row(const Bfloat16* from, int64_t count, float* to) {
    if (count % 2 != 0) to[count / 2] = 0;
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(Bfloat16));
  }
};
#endif

// Rows of `terms` numbers that are summed over, as rows of lanes, `to_stride` apart; `all` of them, those past `rows`
// of zeros.
template <class Kind>
HWY_INLINE void pack_rows(const typename Kind::Input* x, int64_t stride, int64_t rows, int64_t all, int64_t terms,
                          float* to, int64_t to_stride) {
  for (int64_t row = 0; row < rows; ++row) Kind::copy_row(x + row * stride, terms, to + row * to_stride);
  for (int64_t row = rows; row < all; ++row) std::fill_n(to + row * to_stride, steps_of<Kind>(terms), 0.0F);
}

// `columns` columns of x as panels, each of its rows next to one another; the last one is filled up with zeros.
template <class Kind>
HWY_INLINE void pack_panels(const typename Kind::Input* x, int64_t stride, int64_t rows, int64_t columns, int64_t panel,
                            float* to) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t column = 0; column < columns; column += panel, to += steps_of<Kind>(rows) * panel) {
    const int64_t count = std::min(panel, columns - column);
    for (int64_t step = 0; step < steps_of<Kind>(rows); ++step) {
      const auto* const first = x + step * Kind::kRows * stride + column;
      const auto* const second = second_row<Kind>(first, stride, step, rows);
      for (int64_t i = 0; i < panel; i += lanes) {
        FloatVector values = hn::Zero(d);
        if (i + lanes <= count) {
          values = Kind::load(WholeVector(), first + i, row_or_null(second, i));
        } else if (i < count) {
          values = Kind::load(PartVector{static_cast<size_t>(count - i)}, first + i, row_or_null(second, i));
        }
        hn::StoreU(values, d, to + step * panel + i);
      }
    }
  }
}

}  // namespace siamese::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
