#include "siamese/kernels/junction.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "siamese/kernels/junction.cc"
#include "hwy/foreach_target.h"

#include "hwy/cache_control.h"
#include "hwy/highway.h"

#include "siamese/kernels/junction_backward-inl.h"
#include "siamese/kernels/junction_forward-inl.h"

HWY_BEFORE_NAMESPACE();
namespace siamese::kernels::HWY_NAMESPACE {

// Which norms a junction has, and whether X is scaled, as far as that is known when compiling.
template <Presence kBranch, Presence kX, Presence kY, Presence kInput, Presence kXScale = Presence::no>
struct JunctionNorms {
  static constexpr Presence branch = kBranch, x = kX, y = kY, input = kInput, x_scale = kXScale;
};

template <bool kLayer, bool kTwo, class Known, class T>
void forward_rows(const Junction& junction, const JunctionRowsOf<T>& rows, int64_t row_begin, int64_t row_end) {
  std::fill_n(rows.scratch + 2 * junction.cols, junction.cols, 1.0F);  // ForwardRow::ones_in
  for (int64_t row = row_begin; row < row_end; ++row) forward_row<kLayer, kTwo, Known, T>(junction, rows, row);
}

template <bool kLayer, bool kTwo, class Known, class T>
void backward_rows(const Junction& junction, const JunctionGradientsOf<T>& gradients, int64_t row_begin,
                   int64_t row_end) {
  const BackwardScratch scratch(gradients.scratch, junction.cols);
  for (int64_t row = row_begin; row < row_end; ++row) {
    backward_row<kLayer, kTwo, Known, T>(junction, gradients, scratch, row);
  }
}

// Calls run(two streams, which norms) with both as types. The norms of the schemes people train are known when
// compiling; any other set is asked for vector by vector, which is slower and right as well.
template <class Run>
void with_norms(const Junction& junction, bool two_streams, const Run& run) {
  constexpr auto kNo = Presence::no, kYes = Presence::yes, kUnknown = Presence::unknown;
  const bool branch = junction.branch_norm.present;
  const bool x = junction.x_norm.present;
  const bool y = junction.y_norm.present;
  const bool input = junction.input_norm.present;
  if (two_streams) {
    using std::true_type;
    const bool scale = junction.x_scale != nullptr;
    if (!branch && x && y && input && !scale) return run(true_type(), JunctionNorms<kNo, kYes, kYes, kYes>());
    if (!branch && !x && y && !input && scale) return run(true_type(), JunctionNorms<kNo, kNo, kYes, kNo, kYes>());
    return run(true_type(), JunctionNorms<kUnknown, kUnknown, kUnknown, kUnknown, kUnknown>());
  }
  using std::false_type;
  if (!branch && y && !input) return run(false_type(), JunctionNorms<kNo, kNo, kYes, kNo>());
  if (branch && y && !input) return run(false_type(), JunctionNorms<kYes, kNo, kYes, kNo>());
  return run(false_type(), JunctionNorms<kUnknown, kUnknown, kUnknown, kUnknown>());
}

template <class T>
void forward_all(const Junction& junction, const JunctionRowsOf<T>& rows, int64_t row_begin, int64_t row_end) {
  with_norms(junction, rows.x != nullptr, [&](auto two, auto known) {
    const auto run = junction.layer ? forward_rows<true, decltype(two)::value, decltype(known), T>
                                    : forward_rows<false, decltype(two)::value, decltype(known), T>;
    run(junction, rows, row_begin, row_end);
  });
  hwy::FlushStream();
}

template <class T>
void backward_all(const Junction& junction, const JunctionGradientsOf<T>& gradients, int64_t row_begin,
                  int64_t row_end) {
  with_norms(junction, gradients.x_sum != nullptr, [&](auto two, auto known) {
    const auto run = junction.layer ? backward_rows<true, decltype(two)::value, decltype(known), T>
                                    : backward_rows<false, decltype(two)::value, decltype(known), T>;
    run(junction, gradients, row_begin, row_end);
  });
  hwy::FlushStream();
}

void junction_forward_of_floats(const Junction& junction, const JunctionRows& rows, int64_t row_begin,
                                int64_t row_end) {
  forward_all(junction, rows, row_begin, row_end);
}
void junction_forward_of_bfloat16(const Junction& junction, const JunctionRowsOf<Bfloat16>& rows, int64_t row_begin,
                                  int64_t row_end) {
  forward_all(junction, rows, row_begin, row_end);
}
void junction_backward_of_floats(const Junction& junction, const JunctionGradients& gradients, int64_t row_begin,
                                 int64_t row_end) {
  backward_all(junction, gradients, row_begin, row_end);
}
void junction_backward_of_bfloat16(const Junction& junction, const JunctionGradientsOf<Bfloat16>& gradients,
                                   int64_t row_begin, int64_t row_end) {
  backward_all(junction, gradients, row_begin, row_end);
}

}  // namespace siamese::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace siamese::kernels {

HWY_EXPORT(junction_forward_of_floats);
HWY_EXPORT(junction_forward_of_bfloat16);
HWY_EXPORT(junction_backward_of_floats);
HWY_EXPORT(junction_backward_of_bfloat16);

void junction_forward(const Junction& junction, const JunctionRows& rows, int64_t row_begin, int64_t row_end) {
  HWY_DYNAMIC_DISPATCH(junction_forward_of_floats)(junction, rows, row_begin, row_end);
}

void junction_forward(const Junction& junction, const JunctionRowsOf<Bfloat16>& rows, int64_t row_begin,
                      int64_t row_end) {
  HWY_DYNAMIC_DISPATCH(junction_forward_of_bfloat16)(junction, rows, row_begin, row_end);
}

void junction_backward(const Junction& junction, const JunctionGradients& gradients, int64_t row_begin,
                       int64_t row_end) {
  HWY_DYNAMIC_DISPATCH(junction_backward_of_floats)(junction, gradients, row_begin, row_end);
}

void junction_backward(const Junction& junction, const JunctionGradientsOf<Bfloat16>& gradients, int64_t row_begin,
                       int64_t row_end) {
  HWY_DYNAMIC_DISPATCH(junction_backward_of_bfloat16)(junction, gradients, row_begin, row_end);
}

}  // namespace siamese::kernels
#endif  // HWY_ONCE
