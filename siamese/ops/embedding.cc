#include "siamese/ops/embedding.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "siamese/ops/arguments.h"
#include "siamese/ops/gradient.h"
#include "siamese/ops/library.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/one_thread.h"
#include "siamese/ops/scope.h"
#include "siamese/ops/wide.h"

namespace siamese::ops {

namespace plain {

at::Tensor embedding(const at::Tensor& table, const at::Tensor& indices) { return table.index({indices}); }

at::Tensor add_to_each(const at::Tensor& x, const at::Tensor& row) { return x + row; }

}  // namespace plain

namespace embedding_op {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

void check(const at::Tensor& table, const at::Tensor& indices) {
  Arguments("embedding", "table", table).rank("table", table, 2).index("indices", indices);
}

void check_backward(const at::Tensor& dy, const at::Tensor& indices, c10::SymInt rows) {
  const Arguments arguments("embedding_backward", "dy", dy);
  arguments.least_rank("dy", dy, 1).index("indices", indices);
  auto sizes = indices.sym_sizes().vec();
  sizes.push_back(dy.sym_size(-1));
  arguments.shape("dy", dy, sizes).require(rows >= 0, "rows", "at least 0", shape_text({rows}));
}

at::Tensor plain_forward(const at::Tensor& table, const at::Tensor& indices) {
  check(table, indices);
  const OneThread one_thread;
  return plain::embedding(table, indices).contiguous();
}

// LibTorch's lookup is a copy of rows: there is nothing to fuse, only indices to check.
at::Tensor cpu_forward(const at::Tensor& table, const at::Tensor& indices) {
  check(table, indices);
  check_indices("embedding", "indices", indices, table.size(0));
  if (!use_fused("embedding", {table})) return plain_forward(table, indices);
  return at::embedding(table, indices).contiguous();
}

at::Tensor meta_forward(const at::Tensor& table, const at::Tensor& indices) {
  check(table, indices);
  auto sizes = indices.sym_sizes().vec();
  sizes.push_back(table.sym_size(1));
  return at::empty_symint(sizes, table.options());
}

at::Tensor plain_backward(const at::Tensor& dy, const at::Tensor& indices, c10::SymInt rows) {
  check_backward(dy, indices, rows);
  const OneThread one_thread;
  const int64_t width = dy.size(-1);
  return at::zeros({rows.expect_int(), width}, dy.options().dtype(wide_type(dy)))
      .index_add_(0, indices.reshape({-1}), wide(dy).reshape({indices.numel(), width}))
      .to(dy.scalar_type());
}

// to[indices[i]] += from[i], cut by columns: each thread goes through all uses in order.
void add_rows(const at::Tensor& to, const at::Tensor& given_indices, const at::Tensor& given_dy) {
  const at::Tensor indices = given_indices.contiguous();
  const at::Tensor dy = given_dy.contiguous();
  const int64_t width = to.size(1);
  const int64_t* const row = indices.const_data_ptr<int64_t>();
  const float* const from = dy.const_data_ptr<float>();
  float* const sums = to.mutable_data_ptr<float>();
  at::parallel_for(0, width, 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = 0; i < indices.numel(); ++i) {
      for (int64_t col = begin; col < end; ++col) sums[row[i] * width + col] += from[i * width + col];
    }
  });
}

at::Tensor fused_backward(const at::Tensor& dy, const at::Tensor& indices, c10::SymInt rows) {
  check_backward(dy, indices, rows);
  check_indices("embedding_backward", "indices", indices, rows.expect_int());
  if (!use_fused("embedding", {dy})) return plain_backward(dy, indices, rows);
  at::Tensor dtable = at::zeros({rows.expect_int(), dy.size(-1)}, dy.options());
  add_rows(dtable, indices, dy);
  return dtable;
}

at::Tensor meta_backward(const at::Tensor& dy, const at::Tensor& indices, c10::SymInt rows) {
  check_backward(dy, indices, rows);
  return at::empty_symint({rows, dy.sym_size(-1)}, dy.options());
}

class Pair : public torch::autograd::Function<Pair> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& table, const at::Tensor& indices) {
    const at::AutoDispatchBelowAutograd below;
    static const auto op = find_op("embedding_forward", cpu_forward);
    context->save_for_backward({table, indices});
    return op.call(table, indices);
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const auto saved = context->get_saved_variables();
    const at::Tensor& table = saved[0];
    if (adds_in_place(table) && use_fused("embedding", {table, grads[0]})) {
      add_rows(table.grad(), saved[1], grads[0]);
      return {at::Tensor(), at::Tensor()};
    }
    const BelowAutograd below;
    static const auto op = find_op("embedding_backward", fused_backward);
    return {op.call(grads[0], saved[1], table.sym_size(0)), at::Tensor()};
  }
};

at::Tensor pair(const at::Tensor& table, const at::Tensor& indices) { return Pair::apply(table, dense_once(indices)); }

at::Tensor alone(const at::Tensor& table, const at::Tensor& indices) {
  static const auto op = find_op("embedding_forward", cpu_forward);
  return op.call(table, indices);
}

TORCH_LIBRARY_FRAGMENT(siamese, library) {
  define_pair(library, "embedding(Tensor table, Tensor indices) -> Tensor", pair, alone);
  define_part(library, "embedding_forward(Tensor table, Tensor indices) -> Tensor", plain_forward, cpu_forward,
              meta_forward);
  define_part(library, "embedding_backward(Tensor dy, Tensor indices, SymInt rows) -> Tensor", plain_backward,
              fused_backward, meta_backward);
}

}  // namespace embedding_op

// The gradient of x is the one that came, so there is a backward part for `row` alone.
namespace add_to_each_op {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

void check(const at::Tensor& x, const at::Tensor& row) {
  const Arguments arguments("add_to_each", "x", x);
  arguments.least_rank("x", x, 1).shape("row", row, x.sym_sizes().slice(1));
}

void check_backward(const at::Tensor& dy) { Arguments("add_to_each_backward", "dy", dy).least_rank("dy", dy, 1); }

// One pass of LibTorch's own, each element by itself: nothing to fuse.
at::Tensor any_forward(const at::Tensor& x, const at::Tensor& row) {
  check(x, row);
  return plain::add_to_each(x, row).contiguous();
}

at::Tensor meta_forward(const at::Tensor& x, const at::Tensor& row) {
  check(x, row);
  return empty_dense(x);
}

at::Tensor any_backward(const at::Tensor& dy) {
  check_backward(dy);
  const OneThread one_thread;
  return dy.sum(0).contiguous();
}

at::Tensor meta_backward(const at::Tensor& dy) {
  check_backward(dy);
  return at::empty_symint(dy.sym_sizes().slice(1), dy.options());
}

class Pair : public torch::autograd::Function<Pair> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& row) {
    const at::AutoDispatchBelowAutograd below;
    static const auto op = find_op("add_to_each_forward", any_forward);
    context->set_materialize_grads(false);
    return op.call(x, row);
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    if (!grads[0].defined()) return {at::Tensor(), at::Tensor()};
    const BelowAutograd below;
    static const auto op = find_op("add_to_each_backward", any_backward);
    return {grads[0], context->needs_input_grad(1) ? op.call(grads[0]) : at::Tensor()};
  }
};

at::Tensor pair(const at::Tensor& x, const at::Tensor& row) { return Pair::apply(x, row); }

at::Tensor alone(const at::Tensor& x, const at::Tensor& row) {
  static const auto op = find_op("add_to_each_forward", any_forward);
  return op.call(x, row);
}

TORCH_LIBRARY_FRAGMENT(siamese, library) {
  define_pair(library, "add_to_each(Tensor x, Tensor row) -> Tensor", pair, alone);
  define_part(library, "add_to_each_forward(Tensor x, Tensor row) -> Tensor", any_forward, any_forward, meta_forward);
  define_part(library, "add_to_each_backward(Tensor dy) -> Tensor", any_backward, any_backward, meta_backward);
}

}  // namespace add_to_each_op

at::Tensor add_to_each(const at::Tensor& x, const at::Tensor& row) {
  static const auto op = find_op("add_to_each", add_to_each_op::pair);
  return op.call(x, row);
}

at::Tensor embedding(const at::Tensor& table, const at::Tensor& indices) {
  const PartScope scope("part::embedding");
  static const auto op = find_op("embedding", embedding_op::pair);
  return op.call(table, indices);
}

}  // namespace siamese::ops
