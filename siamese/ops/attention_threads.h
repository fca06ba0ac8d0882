// Attention's kernels on all threads (kernels/attention.h). Every thread takes as many whole tasks as every other; the
// tasks that are left over, fewer than threads, are shared by all in pieces. Both ways give the same bits.
#pragma once

#include "siamese/kernels/attention.h"

namespace siamese::ops {

// For T: float and kernels::Bfloat16.
template <class T>
void run_attention(const kernels::AttentionShape& shape, const kernels::AttentionInputsOf<T>& inputs, T* out,
                   float* lse);

template <class T>
void run_attention_backward(const kernels::AttentionShape& shape, const kernels::AttentionInputsOf<T>& inputs,
                            const kernels::AttentionGradientsOf<T>& gradients);

}  // namespace siamese::ops
