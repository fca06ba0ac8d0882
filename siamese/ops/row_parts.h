// What row_linear and row_project share: rows cut into parts by their number alone, each a serial product.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include "siamese/kernels/partition.h"
#include "siamese/ops/arguments.h"
#include "siamese/ops/one_thread.h"

namespace siamese::ops::row_parts {

// x: [..., in]; weight: [out, in]
inline void check(const char* op, const at::Tensor& x, const at::Tensor& weight) {
  const Arguments arguments(op, "x", x);
  arguments.least_rank("x", x, 1).rank("weight", weight, 2);
  arguments.shape("weight", weight, {weight.sym_size(0), x.sym_size(-1)});
}

// The sizes of x, the last one replaced.
inline c10::SymDimVector with_last(const at::Tensor& x, const c10::SymInt& last) {
  c10::SymDimVector shape(x.sym_sizes().begin(), x.sym_sizes().end());
  shape.back() = last;
  return shape;
}

// [rows, cols]
inline at::Tensor flattened(const at::Tensor& x) {
  c10::SymInt rows = 1;
  for (const auto& size : x.sym_sizes().slice(0, static_cast<size_t>(x.dim() - 1))) rows = rows * size;
  return x.reshape_symint({rows, x.sym_size(-1)});
}

// Four times the usual part: calling a library for a narrow product of fewer rows costs more than the product.
inline kernels::Partition parts_of(const at::Tensor& flat) {
  return kernels::partition_rows(flat.size(0), std::max<int64_t>(1, flat.size(1) / 4));
}

// body(part, first row, rows) for each part; inside, a product runs on one thread.
template <class Body>
void for_each_part(const kernels::Partition& partition, const Body& body) {
  for_each_task(partition.parts, [&](int64_t part) {
    const at::AutoDispatchBelowAutograd below;  // of this thread
    body(part, partition.begin(part), partition.end(part) - partition.begin(part));
  });
}

// The parts of the weight's gradient added in order.
inline at::Tensor in_order(const std::vector<at::Tensor>& parts, const at::Tensor& weight) {
  if (parts.empty()) return at::zeros(weight.sizes(), weight.options());
  at::Tensor sum = parts[0];
  for (size_t part = 1; part < parts.size(); ++part) sum.add_(parts[part]);
  return sum.contiguous();
}

}  // namespace siamese::ops::row_parts
