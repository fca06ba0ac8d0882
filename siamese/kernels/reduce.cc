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

// Four rows at a time: the sums are read and written once for them.
template <class T>
void add_column_sums_of(const T* x, float* sums, int64_t row_begin, int64_t row_end, int64_t cols) {
  const Floats d;
  int64_t row = row_begin;
  for (; row + 4 <= row_end; row += 4) {
    const T* const rows = x + row * cols;
    for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR {
      const auto first = hn::Add(access.load(d, rows + i), access.load(d, rows + cols + i));
      const auto second = hn::Add(access.load(d, rows + 2 * cols + i), access.load(d, rows + 3 * cols + i));
      access.store(hn::Add(access.load(d, sums + i), hn::Add(first, second)), d, sums + i);
    });
  }
  for (; row < row_end; ++row) {
    for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR {
      access.store(hn::Add(access.load(d, sums + i), access.load(d, x + row * cols + i)), d, sums + i);
    });
  }
}

void add_column_sums_of_floats(const float* x, float* sums, int64_t row_begin, int64_t row_end, int64_t cols) {
  add_column_sums_of(x, sums, row_begin, row_end, cols);
}
void add_column_sums_of_bfloat16(const Bfloat16* x, float* sums, int64_t row_begin, int64_t row_end, int64_t cols) {
  add_column_sums_of(x, sums, row_begin, row_end, cols);
}

}  // namespace siamese::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace siamese::kernels {

HWY_EXPORT(sum);
HWY_EXPORT(sum_squares);
HWY_EXPORT(add_column_sums_of_floats);
HWY_EXPORT(add_column_sums_of_bfloat16);

double sum(const float* x, int64_t begin, int64_t end) { return HWY_DYNAMIC_DISPATCH(sum)(x, begin, end); }

double sum_squares(const float* x, int64_t begin, int64_t end) {
  return HWY_DYNAMIC_DISPATCH(sum_squares)(x, begin, end);
}

void add_column_sums(const float* x, float* sums, int64_t row_begin, int64_t row_end, int64_t cols) {
  HWY_DYNAMIC_DISPATCH(add_column_sums_of_floats)(x, sums, row_begin, row_end, cols);
}

void add_column_sums(const Bfloat16* x, float* sums, int64_t row_begin, int64_t row_end, int64_t cols) {
  HWY_DYNAMIC_DISPATCH(add_column_sums_of_bfloat16)(x, sums, row_begin, row_end, cols);
}

}  // namespace siamese::kernels
#endif  // HWY_ONCE
