// The op depth_attend. A row is a token: its heads of q, and of the keys and values of every source.
//
//   depth_attend_forward    q, keys, values -> out, the weights a [..., kv_heads, sources]
//   depth_attend_backward   d_out, q, keys, values, weights -> gradients of q, keys, values. With u_j = <d_out, v_j>,
//                           e_j = a_j (u_j - sum_i a_i u_i) / sqrt(key_dim) and the mean query m of `group` heads:
//                             d_v_j = a_j d_out;   d_k_j = e_j m;   d_q = sum_j e_j k_j / group
#include "siamese/ops/depth_attend.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include <ATen/ATen.h>

#include "siamese/ops/arguments.h"
#include "siamese/ops/library.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/row_parts.h"
#include "siamese/ops/scope.h"
#include "siamese/ops/wide.h"

namespace siamese::ops {
namespace depth_attend_op {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;
using Made = std::tuple<at::Tensor, at::Tensor>;
using Gradients = std::tuple<at::Tensor, tensor_list, tensor_list>;
using Wanted = std::array<bool, 3>;  // q, keys, values

// The sizes of `like` with others at the end.
c10::SymDimVector with_heads(const at::Tensor& like, const c10::SymInt& heads, const c10::SymInt& each) {
  c10::SymDimVector sizes(like.sym_sizes().begin(), like.sym_sizes().end());
  sizes[sizes.size() - 2] = heads;
  sizes.back() = each;
  return sizes;
}

void check(const char* op, const at::Tensor& q, at::TensorList keys, at::TensorList values) {
  const Arguments arguments(op, "q", q);
  arguments.least_rank("q", q, 2);
  arguments.require(!keys.empty(), "keys", "at least one", "none");
  if (keys.size() != values.size()) {
    arguments.require(false, "values", "as many as there are keys, " + std::to_string(keys.size()),
                      std::to_string(values.size()));
  }
  arguments.rank("keys", keys[0], q.dim()).rank("values", values[0], q.dim());
  const c10::SymInt heads = q.sym_size(-2), kv_heads = keys[0].sym_size(-2);
  if (kv_heads < 1 || heads < 1 || heads % kv_heads != 0 || q.sym_size(-1) < 1) {
    arguments.require(false, "keys", "heads that divide those of q, and rows of at least one number",
                      "shape " + shape_text(keys[0].sym_sizes()) + " beside " + shape_text(q.sym_sizes()));
  }
  for (const at::Tensor& key : keys) arguments.shape("keys", key, with_heads(q, kv_heads, q.sym_size(-1)));
  const c10::SymInt head_dim = values[0].sym_size(-1);
  if (head_dim < 1) {
    arguments.require(false, "values", "rows of at least one number", "shape " + shape_text(values[0].sym_sizes()));
  }
  for (const at::Tensor& value : values) arguments.shape("values", value, with_heads(q, kv_heads, head_dim));
}

void check_backward(const at::Tensor& d_out, const at::Tensor& q, at::TensorList keys, at::TensorList values,
                    const at::Tensor& weights) {
  constexpr const char* kOp = "depth_attend_backward";
  check(kOp, q, keys, values);
  const auto sources = static_cast<int64_t>(keys.size());
  Arguments(kOp, "q", q)
      .shape("d_out", d_out, values[0].sym_sizes())
      .wide_shape("weights", weights, with_heads(q, keys[0].sym_size(-2), sources));
}

// One number a head: [..., kv_heads].
at::Tensor products(const at::Tensor& a, const at::Tensor& b) { return (a * b).sum(-1); }

// [..., kv_heads, key_dim]
at::Tensor mean_query(const at::Tensor& q, const at::Tensor& key) {
  const at::Tensor of = wide(q);
  if (q.size(-2) == key.size(-2)) return of;
  std::vector<int64_t> sizes = q.sizes().vec();
  sizes.back() = q.size(-2) / key.size(-2);
  sizes[sizes.size() - 2] = key.size(-2);
  sizes.push_back(q.size(-1));
  return of.reshape(sizes).mean(-2);
}

at::Tensor weights_of(const at::Tensor& q, at::TensorList keys) {
  const at::Tensor query = mean_query(q, keys[0]);
  Tensors scores;
  for (const at::Tensor& key : keys) scores.push_back(products(query, wide(key)));
  return at::softmax(at::stack(scores, -1) / std::sqrt(static_cast<double>(q.size(-1))), -1);
}

at::Tensor weighted(const at::Tensor& weights, at::TensorList values) {
  at::Tensor sum;
  for (size_t j = 0; j < values.size(); ++j) {
    const auto at = static_cast<int64_t>(j);
    const at::Tensor share = weights.narrow(-1, at, 1) * wide(values[j]);
    sum = j == 0 ? share : sum + share;
  }
  return sum.to(values[0].scalar_type());
}

struct Rows {
  at::Tensor q;
  tensor_list keys, values;
  at::Tensor weights, d_out;  // backward
};

struct RowGradients {
  at::Tensor q;  // of a group's heads, all alike: [..., kv_heads, 1, dim]
  tensor_list keys, values;
};

RowGradients gradients(const Rows& of) {
  RowGradients made;
  const at::Tensor d_out = wide(of.d_out), query = mean_query(of.q, of.keys[0]);
  Tensors along;
  for (const at::Tensor& value : of.values) along.push_back(products(d_out, wide(value)));
  const at::Tensor u = at::stack(along, -1);
  const at::Tensor e =
      of.weights * (u - (of.weights * u).sum(-1, true)) / std::sqrt(static_cast<double>(of.q.size(-1)));
  at::Tensor d_query;
  for (size_t j = 0; j < of.keys.size(); ++j) {
    const auto at = static_cast<int64_t>(j);
    const at::Tensor of_score = e.narrow(-1, at, 1);
    made.keys.push_back(of_score * query);
    made.values.push_back(of.weights.narrow(-1, at, 1) * d_out);
    const at::Tensor share = of_score * wide(of.keys[j]);
    d_query = j == 0 ? share : d_query + share;
  }
  const int64_t group = of.q.size(-2) / of.keys[0].size(-2);
  made.q = (d_query / static_cast<double>(group)).unsqueeze(-2);
  return made;
}

// [rows, heads, each]
at::Tensor as_rows(const at::Tensor& x) { return x.reshape({-1, x.size(-2), x.size(-1)}); }
tensor_list as_rows(at::TensorList list) {
  tensor_list rows;
  for (const at::Tensor& one : list) rows.push_back(as_rows(one));
  return rows;
}
tensor_list narrowed(const tensor_list& list, int64_t first, int64_t count) {
  tensor_list parts;
  for (const at::Tensor& one : list) parts.push_back(one.narrow(0, first, count));
  return parts;
}

// Empty tensors that will have the rows of `like`, or nothing where they are not wanted.
at::Tensor room_for(bool wanted, const at::Tensor& like) { return wanted ? empty_dense(like) : no_gradient(like); }
tensor_list room_for(bool wanted, at::TensorList like) {
  tensor_list room;
  for (const at::Tensor& one : like) room.push_back(room_for(wanted, one));
  return room;
}

at::Tensor empty_weights(const at::Tensor& q, at::TensorList keys) {
  return at::empty_symint(with_heads(q, keys[0].sym_size(-2), static_cast<int64_t>(keys.size())),
                          q.options().dtype(wide_type(q)));
}

template <class Body>
void for_each_part(const at::Tensor& rows, const Body& body) {
  const auto partition = kernels::partition_rows(rows.size(0), rows.size(1) * rows.size(2));
  row_parts::for_each_part(partition, [&](int64_t, int64_t first, int64_t count) { body(first, count); });
}

Made plain_forward(const at::Tensor& q, at::TensorList keys, at::TensorList values) {
  check("depth_attend", q, keys, values);
  const OneThread one_thread;
  const at::Tensor weights = weights_of(q, keys);
  return {weighted(weights, values).contiguous(), weights.contiguous()};
}

Made cpu_forward(const at::Tensor& q, at::TensorList keys, at::TensorList values) {
  if (mode() == Mode::plain) return plain_forward(q, keys, values);
  check("depth_attend", q, keys, values);
  const at::Tensor out = empty_dense(values[0]), weights = empty_weights(q, keys);
  if (weights.numel() == 0) return {out, weights};
  const Rows rows{as_rows(q), as_rows(keys), as_rows(values), {}, {}};
  const at::Tensor out_rows = as_rows(out), weight_rows = as_rows(weights);
  for_each_part(rows.q, [&](int64_t first, int64_t count) {
    const at::Tensor made = weights_of(rows.q.narrow(0, first, count), narrowed(rows.keys, first, count));
    weight_rows.narrow(0, first, count).copy_(made);
    out_rows.narrow(0, first, count).copy_(weighted(made, narrowed(rows.values, first, count)));
  });
  return {out, weights};
}

Made meta_forward(const at::Tensor& q, at::TensorList keys, at::TensorList values) {
  check("depth_attend", q, keys, values);
  return {empty_dense(values[0]), empty_weights(q, keys)};
}

Gradients plain_backward(const at::Tensor& d_out, const at::Tensor& q, at::TensorList keys, at::TensorList values,
                         const at::Tensor& weights, Wanted wanted) {
  check_backward(d_out, q, keys, values, weights);
  const OneThread one_thread;
  const RowGradients made = gradients({q, keys.vec(), values.vec(), weights, d_out});
  const auto kept = [](bool is_wanted, const at::Tensor& of, const at::Tensor& like) {
    return is_wanted ? of.to(like.scalar_type()).contiguous() : no_gradient(like);
  };
  tensor_list d_keys, d_values;
  for (size_t j = 0; j < keys.size(); ++j) {
    d_keys.push_back(kept(wanted[1], made.keys[j], keys[j]));
    d_values.push_back(kept(wanted[2], made.values[j], values[j]));
  }
  const int64_t group = q.size(-2) / keys[0].size(-2);
  const at::Tensor d_q = wanted[0] ? made.q.squeeze(-2).repeat_interleave(group, -2) : made.q;
  return {kept(wanted[0], d_q, q), d_keys, d_values};
}

Gradients cpu_backward(const at::Tensor& d_out, const at::Tensor& q, at::TensorList keys, at::TensorList values,
                       const at::Tensor& weights, Wanted wanted) {
  if (mode() == Mode::plain) return plain_backward(d_out, q, keys, values, weights, wanted);
  check_backward(d_out, q, keys, values, weights);
  const Gradients room{room_for(wanted[0], q), room_for(wanted[1], keys), room_for(wanted[2], values)};
  if (weights.numel() == 0) return room;
  const Rows rows{as_rows(q), as_rows(keys), as_rows(values), as_rows(weights), as_rows(d_out)};
  const auto& [d_q, d_keys, d_values] = room;
  for_each_part(rows.q, [&, &to_q = d_q, &to_keys = d_keys, &to_values = d_values](int64_t first, int64_t count) {
    const auto part = [&](const at::Tensor& of) { return of.narrow(0, first, count); };
    const RowGradients made = gradients({part(rows.q), narrowed(rows.keys, first, count),
                                         narrowed(rows.values, first, count), part(rows.weights), part(rows.d_out)});
    // The heads of a group get the same.
    if (wanted[0]) part(as_rows(to_q)).unflatten(1, {rows.keys[0].size(1), -1}).copy_(made.q);
    for (size_t j = 0; j < made.keys.size(); ++j) {
      if (wanted[1]) part(as_rows(to_keys[j])).copy_(made.keys[j]);
      if (wanted[2]) part(as_rows(to_values[j])).copy_(made.values[j]);
    }
  });
  return room;
}

Gradients meta_backward(const at::Tensor& d_out, const at::Tensor& q, at::TensorList keys, at::TensorList values,
                        const at::Tensor& weights, Wanted wanted) {
  check_backward(d_out, q, keys, values, weights);
  return {room_for(wanted[0], q), room_for(wanted[1], keys), room_for(wanted[2], values)};
}

class Pair : public torch::autograd::Function<Pair> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& q, at::TensorList keys, at::TensorList values) {
    const at::AutoDispatchBelowAutograd below;
    static const auto op = find_op("depth_attend_forward", cpu_forward);
    const auto [out, weights] = op.call(q, keys, values);
    tensor_list saved = {q, weights};
    saved.insert(saved.end(), keys.begin(), keys.end());
    saved.insert(saved.end(), values.begin(), values.end());
    context->save_for_backward(saved);
    return out;
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const tensor_list saved = context->get_saved_variables();
    const size_t sources = (saved.size() - 2) / 2;
    const auto split = saved.begin() + 2 + static_cast<std::ptrdiff_t>(sources);
    const tensor_list keys(saved.begin() + 2, split), values(split, saved.end());
    const auto wanted = wanted_gradients(context, std::vector<bool>(1 + 2 * sources, true));
    const auto any = [&](size_t first) {
      const auto begin = wanted.begin() + static_cast<std::ptrdiff_t>(first);
      return std::find(begin, begin + static_cast<std::ptrdiff_t>(sources), true) !=
             begin + static_cast<std::ptrdiff_t>(sources);
    };
    const BelowAutograd below;
    static const auto op = find_op("depth_attend_backward", cpu_backward);
    const auto [d_q, d_keys, d_values] =
        op.call(grads[0], saved[0], keys, values, saved[1], {wanted[0], any(1), any(1 + sources)});
    tensor_list result = {if_wanted(wanted[0], d_q)};
    for (size_t j = 0; j < sources; ++j) result.push_back(if_wanted(wanted[1 + j], d_keys[j]));
    for (size_t j = 0; j < sources; ++j) result.push_back(if_wanted(wanted[1 + sources + j], d_values[j]));
    return result;
  }
};

at::Tensor pair(const at::Tensor& q, at::TensorList keys, at::TensorList values) {
  const tensor_list dense_keys = dense_once(keys), dense_values = dense_once(values);
  return Pair::apply(dense_once(q), at::TensorList(dense_keys), at::TensorList(dense_values));
}

at::Tensor alone(const at::Tensor& q, at::TensorList keys, at::TensorList values) {
  static const auto op = find_op("depth_attend_forward", cpu_forward);
  return std::get<0>(op.call(q, keys, values));
}

TORCH_LIBRARY_FRAGMENT(siamese, library) {
  const std::string given = "Tensor q, Tensor[] keys, Tensor[] values";
  define_pair(library, "depth_attend(" + given + ") -> Tensor", pair, alone);
  define_part(library, "depth_attend_forward(" + given + ") -> (Tensor out, Tensor weights)", plain_forward,
              cpu_forward, meta_forward);
  define_part(library,
              "depth_attend_backward(Tensor d_out, " + given +
                  ", Tensor weights, bool[3] wanted) -> (Tensor d_q, Tensor[] d_keys, Tensor[] d_values)",
              plain_backward, cpu_backward, meta_backward);
}

}  // namespace depth_attend_op

namespace plain {

at::Tensor depth_attend(const at::Tensor& q, const std::vector<at::Tensor>& keys,
                        const std::vector<at::Tensor>& values) {
  return depth_attend_op::weighted(depth_attend_op::weights_of(q, keys), values);
}

}  // namespace plain

at::Tensor depth_attend(const at::Tensor& q, const std::vector<at::Tensor>& keys,
                        const std::vector<at::Tensor>& values) {
  const PartScope scope("part::attention");
  static const auto op = find_op("depth_attend", depth_attend_op::pair);
  return op.call(q, keys, values);
}

}  // namespace siamese::ops
