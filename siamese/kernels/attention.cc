#include "siamese/kernels/attention.h"

#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "siamese/kernels/attention.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include "siamese/kernels/attention_backward-inl.h"
#include "siamese/kernels/attention_forward-inl.h"
#include "siamese/kernels/simd.h"

HWY_BEFORE_NAMESPACE();
namespace siamese::kernels::HWY_NAMESPACE {

AttentionSizes attention_sizes(const AttentionShape& shape, bool backward) {
  const Scratch at(shape, backward);
  return {at.blocks, (shape.tokens + kKeyPart - 1) / kKeyPart, at.task_size, at.block_size};
}

// body(std::bool_constant<whether products are of pairs>()) for arrays of T.
template <class T, class Body>
HWY_INLINE void with_kind(bool pairs, const Body& body) {
#if SIAMESE_KERNELS_BFLOAT16_PAIRS
  if (std::is_same_v<T, Bfloat16> && pairs) return body(std::bool_constant<std::is_same_v<T, Bfloat16>>());
#endif
  (void)pairs;
  body(std::bool_constant<false>());
}

#define SIAMESE_KERNELS_ATTENTION_OF(type, T)                                                                          \
  void attention_forward_of_##type(const AttentionShape& shape, const AttentionInputsOf<T>& inputs, T* out,            \
                                   float* lse, float* scratch, int64_t task_begin, int64_t task_end, bool pairs) {     \
    with_kind<T>(pairs, [&](auto kind) HWY_ATTR {                                                                      \
      forward_tasks<decltype(kind)::value>(shape, inputs, out, lse, scratch, task_begin, task_end);                    \
    });                                                                                                                \
  }                                                                                                                    \
  void attention_backward_of_##type(const AttentionShape& shape, const AttentionInputsOf<T>& inputs,                   \
                                    const AttentionGradientsOf<T>& gradients, float* scratch, int64_t task_begin,      \
                                    int64_t task_end, bool pairs) {                                                    \
    with_kind<T>(pairs, [&](auto kind) HWY_ATTR {                                                                      \
      backward_tasks<decltype(kind)::value>(shape, inputs, gradients, scratch, task_begin, task_end);                  \
    });                                                                                                                \
  }                                                                                                                    \
  void attention_forward_piece_of_##type(const AttentionShape& shape, const AttentionInputsOf<T>& inputs, T* out,      \
                                         float* lse, const AttentionPiece& piece, bool pairs) {                        \
    with_kind<T>(pairs,                                                                                                \
                 [&](auto kind) HWY_ATTR { forward_piece<decltype(kind)::value>(shape, inputs, out, lse, piece); });   \
  }                                                                                                                    \
  void attention_backward_piece_of_##type(const AttentionShape& shape, const AttentionInputsOf<T>& inputs,             \
                                          const AttentionGradientsOf<T>& gradients, const AttentionPiece& piece,       \
                                          bool pairs) {                                                                \
    with_kind<T>(pairs,                                                                                                \
                 [&](auto kind) HWY_ATTR { backward_piece<decltype(kind)::value>(shape, inputs, gradients, piece); }); \
  }

SIAMESE_KERNELS_ATTENTION_OF(floats, float)
SIAMESE_KERNELS_ATTENTION_OF(bfloat16, Bfloat16)
#undef SIAMESE_KERNELS_ATTENTION_OF

}  // namespace siamese::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace siamese::kernels {

HWY_EXPORT(attention_sizes);

AttentionSizes attention_sizes(const AttentionShape& shape, bool backward) {
  return HWY_DYNAMIC_DISPATCH(attention_sizes)(shape, backward);
}

int64_t attention_forward_scratch(const AttentionShape& shape) {
  const AttentionSizes sizes = attention_sizes(shape, false);
  return sizes.task_floats + sizes.block_floats;
}

int64_t attention_backward_scratch(const AttentionShape& shape) {
  const AttentionSizes sizes = attention_sizes(shape, true);
  return sizes.task_floats + sizes.block_floats;
}

#define SIAMESE_KERNELS_ATTENTION_OF(type, T)                                                                         \
  HWY_EXPORT(attention_forward_of_##type);                                                                            \
  HWY_EXPORT(attention_backward_of_##type);                                                                           \
  HWY_EXPORT(attention_forward_piece_of_##type);                                                                      \
  HWY_EXPORT(attention_backward_piece_of_##type);                                                                     \
                                                                                                                      \
  void attention_forward(const AttentionShape& shape, const AttentionInputsOf<T>& inputs, T* out, float* lse,         \
                         float* scratch, int64_t task_begin, int64_t task_end) {                                      \
    HWY_DYNAMIC_DISPATCH(attention_forward_of_##type)                                                                 \
    (shape, inputs, out, lse, scratch, task_begin, task_end, has_bfloat16_products());                                \
  }                                                                                                                   \
  void attention_backward(const AttentionShape& shape, const AttentionInputsOf<T>& inputs,                            \
                          const AttentionGradientsOf<T>& gradients, float* scratch, int64_t task_begin,               \
                          int64_t task_end) {                                                                         \
    HWY_DYNAMIC_DISPATCH(attention_backward_of_##type)                                                                \
    (shape, inputs, gradients, scratch, task_begin, task_end, has_bfloat16_products());                               \
  }                                                                                                                   \
  void attention_forward_piece(const AttentionShape& shape, const AttentionInputsOf<T>& inputs, T* out, float* lse,   \
                               const AttentionPiece& piece) {                                                         \
    HWY_DYNAMIC_DISPATCH(attention_forward_piece_of_##type)(shape, inputs, out, lse, piece, has_bfloat16_products()); \
  }                                                                                                                   \
  void attention_backward_piece(const AttentionShape& shape, const AttentionInputsOf<T>& inputs,                      \
                                const AttentionGradientsOf<T>& gradients, const AttentionPiece& piece) {              \
    HWY_DYNAMIC_DISPATCH(attention_backward_piece_of_##type)                                                          \
    (shape, inputs, gradients, piece, has_bfloat16_products());                                                       \
  }

SIAMESE_KERNELS_ATTENTION_OF(floats, float)
SIAMESE_KERNELS_ATTENTION_OF(bfloat16, Bfloat16)
#undef SIAMESE_KERNELS_ATTENTION_OF

}  // namespace siamese::kernels
#endif  // HWY_ONCE
