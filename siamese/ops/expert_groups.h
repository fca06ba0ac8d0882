// The rows of a mixture of experts sorted by expert (stable: by row, then by rank). Packed row i
// is input row source[i]; the r-th choice of row t lies at packed row place[t, r]; the rows of expert e are [first[e],
// first[e + 1]).
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace siamese::ops {

struct ExpertGroups {
  at::Tensor source;  // int64 [rows k]
  at::Tensor place;   // int64 [rows, k]
  at::Tensor first;   // int64 [E + 1]
};

// chosen: int64 [rows, k], dense.
ExpertGroups group_by_expert(const at::Tensor& chosen, int64_t experts);

}  // namespace siamese::ops
