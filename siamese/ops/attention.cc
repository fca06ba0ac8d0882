#include "siamese/ops/attention.h"

#include <algorithm>
#include <optional>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include "siamese/base/check.h"
#include "siamese/kernels/attention.h"
#include "siamese/kernels/partition.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/norm.h"
#include "siamese/ops/one_thread.h"
#include "siamese/ops/pointers.h"
#include "siamese/ops/rope.h"
#include "siamese/ops/scope.h"

namespace siamese::ops {

namespace plain {

at::Tensor attention(const at::Tensor& qkv, const AttentionArguments& arguments) {
  const int64_t batch = qkv.size(0);
  const int64_t tokens = qkv.size(1);
  const int64_t head_dim = qkv.size(2) / (arguments.heads + 2 * arguments.kv_heads);
  const auto part = [&](int64_t first, int64_t heads, const at::Tensor& gain) {
    const at::Tensor rows =
        qkv.narrow(-1, first * head_dim, heads * head_dim).reshape({batch, tokens, heads, head_dim});
    return gain.defined() ? plain::rms_norm(rows, gain, arguments.eps) : rows;
  };
  at::Tensor q = part(0, arguments.heads, arguments.q_gain);
  at::Tensor k = part(arguments.heads, arguments.kv_heads, arguments.k_gain);
  const at::Tensor v = part(arguments.heads + arguments.kv_heads, arguments.kv_heads, arguments.v_gain);
  if (arguments.cos.defined()) {
    q = rope(q, arguments.cos, arguments.sin);
    k = rope(k, arguments.cos, arguments.sin);
  }
  const at::Tensor mixed = at::scaled_dot_product_attention(
      q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), std::nullopt, /*dropout_p=*/0.0,
      /*is_causal=*/arguments.causal, std::nullopt, /*enable_gqa=*/arguments.kv_heads != arguments.heads);
  return mixed.transpose(1, 2).reshape({batch, tokens, arguments.heads * head_dim});
}

}  // namespace plain

namespace attention_op {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

kernels::AttentionShape shape_of(const at::Tensor& qkv, int64_t heads, int64_t kv_heads, bool causal, double eps) {
  return {
      qkv.size(0), qkv.size(1), heads, kv_heads, qkv.size(2) / (heads + 2 * kv_heads), causal, static_cast<float>(eps)};
}

// The tasks on all threads; body(scratch, begin, end). What a task computes does not depend on its thread.
template <class Body>
void for_tasks(int64_t tasks, int64_t scratch_floats, const Body& body) {
  at::parallel_for(0, tasks, 1, [&](int64_t begin, int64_t end) {
    const at::Tensor scratch = at::empty({scratch_floats}, at::kFloat);
    body(scratch.mutable_data_ptr<float>(), begin, end);
  });
}

// The tasks' shares added in order: [tasks, 3, head_dim] -> [3, head_dim].
at::Tensor sum_of_tasks(const at::Tensor& shares) {
  at::Tensor total = shares[0].clone();
  float* const out = total.mutable_data_ptr<float>();
  const float* const in = shares.const_data_ptr<float>();
  const int64_t size = total.numel();
  for (int64_t i = size; i < shares.numel(); ++i) out[i % size] += in[i];
  return total;
}

// An undefined tensor may not be an input of an autograd node.
std::optional<at::Tensor> optional_input(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

class FusedAttention : public torch::autograd::Function<FusedAttention> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, const std::optional<at::Tensor>& q_gain,
                            const std::optional<at::Tensor>& k_gain, const std::optional<at::Tensor>& v_gain,
                            const AttentionArguments& arguments) {
    const at::Tensor qkv = input.contiguous();
    const tensor_list others = {contiguous(q_gain), contiguous(k_gain), contiguous(v_gain),
                                contiguous(optional_input(arguments.cos)), contiguous(optional_input(arguments.sin))};
    const auto shape = shape_of(qkv, arguments.heads, arguments.kv_heads, arguments.causal, arguments.eps);
    at::Tensor out = at::empty({shape.batch, shape.tokens, shape.heads * shape.head_dim}, qkv.options());
    const at::Tensor lse = at::empty({shape.batch, shape.heads, shape.tokens}, qkv.options());
    for_tasks(shape.tasks(), kernels::attention_forward_scratch(shape),
              [&, inputs = inputs_of(qkv, others)](float* scratch, int64_t begin, int64_t end) {
                kernels::attention_forward(shape, inputs, out.mutable_data_ptr<float>(), lse.mutable_data_ptr<float>(),
                                           scratch, begin, end);
              });
    context->save_for_backward({qkv, out, lse, others[0], others[1], others[2], others[3], others[4]});
    context->saved_data["heads"] = arguments.heads;
    context->saved_data["kv_heads"] = arguments.kv_heads;
    context->saved_data["causal"] = arguments.causal;
    context->saved_data["eps"] = arguments.eps;
    return out;
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const tensor_list saved = context->get_saved_variables();
    const at::Tensor& qkv = saved[0];
    const tensor_list others(saved.begin() + 3, saved.end());
    const auto shape = shape_of(qkv, context->saved_data["heads"].toInt(), context->saved_data["kv_heads"].toInt(),
                                context->saved_data["causal"].toBool(), context->saved_data["eps"].toDouble());
    const at::Tensor d_out = grads[0].contiguous();
    const at::Tensor d_qkv = at::empty_like(qkv);
    const at::Tensor shares = at::zeros({std::max<int64_t>(1, shape.tasks()), 3, shape.head_dim}, qkv.options());
    const kernels::AttentionGradients gradients{saved[1].const_data_ptr<float>(), saved[2].const_data_ptr<float>(),
                                                d_out.const_data_ptr<float>(), d_qkv.mutable_data_ptr<float>(),
                                                shares.mutable_data_ptr<float>()};
    for_tasks(shape.tasks(), kernels::attention_backward_scratch(shape),
              [&, inputs = inputs_of(qkv, others)](float* scratch, int64_t begin, int64_t end) {
                kernels::attention_backward(shape, inputs, gradients, scratch, begin, end);
              });
    const at::Tensor d_gains = sum_of_tasks(shares);
    tensor_list result = {d_qkv, at::Tensor(), at::Tensor(), at::Tensor(), at::Tensor()};
    for (int64_t part = 0; part < 3; ++part) {
      if (others[static_cast<size_t>(part)].defined()) result[static_cast<size_t>(part + 1)] = d_gains[part];
    }
    return result;
  }

 private:
  static at::Tensor contiguous(const std::optional<at::Tensor>& tensor) {
    return tensor.has_value() ? tensor->contiguous() : at::Tensor();
  }

  // others: the gains of q, k and v, then cos and sin.
  static kernels::AttentionInputs inputs_of(const at::Tensor& qkv, const tensor_list& others) {
    return {qkv.const_data_ptr<float>(), data_or_null(others[3]), data_or_null(others[4]),
            data_or_null(others[0]),     data_or_null(others[1]), data_or_null(others[2])};
  }
};

}  // namespace attention_op

at::Tensor attention(const at::Tensor& qkv, const AttentionArguments& arguments) {
  SIAMESE_INVARIANT(qkv.dim() == 3 && arguments.heads % arguments.kv_heads == 0 &&
                    qkv.size(2) % (arguments.heads + 2 * arguments.kv_heads) == 0);
  SIAMESE_INVARIANT(arguments.cos.defined() == arguments.sin.defined());
  const PartScope scope("part::attention");
  const bool fused = use_fused("attention", {qkv, arguments.q_gain, arguments.k_gain, arguments.v_gain, arguments.cos});
  if (!fused) {
    return on_one_thread({qkv, arguments.q_gain, arguments.k_gain, arguments.v_gain}, [&](const Tensors& given) {
      AttentionArguments detached = arguments;
      detached.q_gain = given[1];
      detached.k_gain = given[2];
      detached.v_gain = given[3];
      return plain::attention(given[0], detached);
    });
  }
  using attention_op::optional_input;
  return attention_op::FusedAttention::apply(qkv, optional_input(arguments.q_gain), optional_input(arguments.k_gain),
                                             optional_input(arguments.v_gain), arguments);
}

at::Tensor cached_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const PartScope scope("part::attention");
  const int64_t batch = q.size(0), heads = q.size(1), tokens = q.size(2), head_dim = q.size(3);
  const int64_t kv_heads = k.size(1), all = k.size(2);
  const int64_t group = heads / kv_heads;
  // One new token needs no mask, a later chunk a shifted triangle.
  std::optional<at::Tensor> mask;
  if (all > tokens && tokens > 1) mask = at::ones({tokens, all}, q.options().dtype(at::kBool)).tril(all - tokens);
  constexpr int64_t kPartWork = int64_t{1} << 20;  // multiply-adds
  const int64_t work = 2 * batch * heads * tokens * all * head_dim;
  const kernels::Partition parts{kv_heads, std::clamp<int64_t>(work / kPartWork, 1, kv_heads)};
  const at::Tensor out = at::empty({batch, tokens, heads, head_dim}, q.options());
  for_each_task(parts.parts, [&](int64_t part) {
    const int64_t first = parts.begin(part);
    const int64_t count = parts.end(part) - first;
    const at::Tensor mixed = at::scaled_dot_product_attention(
        q.narrow(1, first * group, count * group), k.narrow(1, first, count), v.narrow(1, first, count), mask,
        /*dropout_p=*/0.0, /*is_causal=*/all == tokens && tokens > 1, std::nullopt, /*enable_gqa=*/group != 1);
    out.narrow(2, first * group, count * group).copy_(mixed.transpose(1, 2));
  });
  return out.view({batch, tokens, heads * head_dim});
}

}  // namespace siamese::ops
