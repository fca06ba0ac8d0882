// Each token attends, per key/value head, to what several blocks of the model made of it:
//   a = softmax over j of <mean of q over the query heads of a group, k_j> / sqrt(key_dim);   out = sum_j a_j v_j
// q: [..., heads, key_dim]; each of keys: [..., kv_heads, key_dim]; each of values and the result:
// [..., kv_heads, head_dim]; as many keys as values, and all of one type. Query head i is of the group
// floor(i * kv_heads / heads). Scores, softmax and sums are float32 at least; backward keeps the weights a.
// There is no kernel: the plain expression everywhere, on the CPU in parts of rows that threads share.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace siamese::ops {

at::Tensor depth_attend(const at::Tensor& q, const std::vector<at::Tensor>& keys,
                        const std::vector<at::Tensor>& values);

namespace plain {

at::Tensor depth_attend(const at::Tensor& q, const std::vector<at::Tensor>& keys,
                        const std::vector<at::Tensor>& values);

}  // namespace plain

}  // namespace siamese::ops
