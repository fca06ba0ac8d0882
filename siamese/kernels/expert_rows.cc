#include "siamese/kernels/expert_rows.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "siamese/kernels/expert_rows.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include "siamese/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace siamese::kernels::HWY_NAMESPACE {

template <class T>
void gather(const T* x, const int64_t* source, const float* factors, T* packed, int64_t begin, int64_t end,
            int64_t cols) {
  const Floats d;
  for (int64_t row = begin; row < end; ++row) {
    const T* const from = x + source[row] * cols;
    T* const to = packed + row * cols;
    if (factors == nullptr) {
      std::memcpy(to, from, static_cast<size_t>(cols) * sizeof(T));
      continue;
    }
    const auto factor = hn::Set(d, factors[row]);
    for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR {
      access.store(hn::Mul(factor, access.load(d, from + i)), d, to + i);
    });
  }
}

template <class T>
void combine(const T* packed, const int64_t* place, const float* weights, T* y, int64_t begin, int64_t end,
             int64_t choices, int64_t cols) {
  const Floats d;
  for (int64_t row = begin; row < end; ++row) {
    const int64_t* const places = place + row * choices;
    const float* const factors = weights + row * choices;
    for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR {
      auto sum = hn::Mul(hn::Set(d, factors[0]), access.load(d, packed + places[0] * cols + i));
      for (int64_t r = 1; r < choices; ++r) {
        sum = hn::MulAdd(hn::Set(d, factors[r]), access.load(d, packed + places[r] * cols + i), sum);
      }
      access.store(sum, d, y + row * cols + i);
    });
  }
}

template <class T>
void weigh(const T* a, T* b, const float* factors, float* products, int64_t begin, int64_t end, int64_t cols) {
  const Floats d;
  const Doubles wide;
  const hn::Rebind<float, Doubles> narrow;
  for (int64_t row = begin; row < end; ++row) {
    const T* const left = a + row * cols;
    T* const right = b + row * cols;
    products[row] = static_cast<float>(sum_in_double(0, cols, [&](auto sum, int64_t i, auto access) HWY_ATTR {
      return hn::MulAdd(hn::PromoteTo(wide, access.load(narrow, left + i)),
                        hn::PromoteTo(wide, access.load(narrow, right + i)), sum);
    }));
    const auto factor = hn::Set(d, factors[row]);
    for_each_vector(0, cols, [&](int64_t i, auto access) HWY_ATTR {
      access.store(hn::Mul(factor, access.load(d, right + i)), d, right + i);
    });
  }
}

void gather_rows_of_floats(const float* x, const int64_t* source, const float* factors, float* packed, int64_t begin,
                           int64_t end, int64_t cols) {
  gather(x, source, factors, packed, begin, end, cols);
}
void gather_rows_of_bfloat16(const Bfloat16* x, const int64_t* source, const float* factors, Bfloat16* packed,
                             int64_t begin, int64_t end, int64_t cols) {
  gather(x, source, factors, packed, begin, end, cols);
}
void combine_rows_of_floats(const float* packed, const int64_t* place, const float* weights, float* y, int64_t begin,
                            int64_t end, int64_t choices, int64_t cols) {
  combine(packed, place, weights, y, begin, end, choices, cols);
}
void combine_rows_of_bfloat16(const Bfloat16* packed, const int64_t* place, const float* weights, Bfloat16* y,
                              int64_t begin, int64_t end, int64_t choices, int64_t cols) {
  combine(packed, place, weights, y, begin, end, choices, cols);
}
void weigh_rows_of_floats(const float* a, float* b, const float* factors, float* products, int64_t begin, int64_t end,
                          int64_t cols) {
  weigh(a, b, factors, products, begin, end, cols);
}
void weigh_rows_of_bfloat16(const Bfloat16* a, Bfloat16* b, const float* factors, float* products, int64_t begin,
                            int64_t end, int64_t cols) {
  weigh(a, b, factors, products, begin, end, cols);
}

}  // namespace siamese::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace siamese::kernels {

HWY_EXPORT(gather_rows_of_floats);
HWY_EXPORT(gather_rows_of_bfloat16);
HWY_EXPORT(combine_rows_of_floats);
HWY_EXPORT(combine_rows_of_bfloat16);
HWY_EXPORT(weigh_rows_of_floats);
HWY_EXPORT(weigh_rows_of_bfloat16);

void gather_rows(const float* x, const int64_t* source, const float* factors, float* packed, int64_t begin, int64_t end,
                 int64_t cols) {
  HWY_DYNAMIC_DISPATCH(gather_rows_of_floats)(x, source, factors, packed, begin, end, cols);
}

void gather_rows(const Bfloat16* x, const int64_t* source, const float* factors, Bfloat16* packed, int64_t begin,
                 int64_t end, int64_t cols) {
  HWY_DYNAMIC_DISPATCH(gather_rows_of_bfloat16)(x, source, factors, packed, begin, end, cols);
}

void combine_rows(const float* packed, const int64_t* place, const float* weights, float* y, int64_t begin, int64_t end,
                  int64_t choices, int64_t cols) {
  HWY_DYNAMIC_DISPATCH(combine_rows_of_floats)(packed, place, weights, y, begin, end, choices, cols);
}

void combine_rows(const Bfloat16* packed, const int64_t* place, const float* weights, Bfloat16* y, int64_t begin,
                  int64_t end, int64_t choices, int64_t cols) {
  HWY_DYNAMIC_DISPATCH(combine_rows_of_bfloat16)(packed, place, weights, y, begin, end, choices, cols);
}

void weigh_rows(const float* a, float* b, const float* factors, float* products, int64_t begin, int64_t end,
                int64_t cols) {
  HWY_DYNAMIC_DISPATCH(weigh_rows_of_floats)(a, b, factors, products, begin, end, cols);
}

void weigh_rows(const Bfloat16* a, Bfloat16* b, const float* factors, float* products, int64_t begin, int64_t end,
                int64_t cols) {
  HWY_DYNAMIC_DISPATCH(weigh_rows_of_bfloat16)(a, b, factors, products, begin, end, cols);
}

}  // namespace siamese::kernels
#endif  // HWY_ONCE
