#include "siamese/ops/attention.h"

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>

#include <ATen/ATen.h>

#include "siamese/kernels/attention.h"
#include "siamese/ops/arguments.h"
#include "siamese/ops/attention_threads.h"
#include "siamese/ops/library.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/norm.h"
#include "siamese/ops/plain_gradient.h"
#include "siamese/ops/pointers.h"
#include "siamese/ops/rope.h"
#include "siamese/ops/scope.h"
#include "siamese/ops/wide.h"

namespace siamese::ops {

namespace attention_detail {

// The heads of qkv with norms and rotation applied: [batch, heads, tokens, head_dim].
struct Heads {
  at::Tensor q;
  at::Tensor k;
  at::Tensor v;
};

Heads heads_of(const at::Tensor& qkv, const AttentionArguments& arguments) {
  const int64_t head_dim = qkv.size(2) / (arguments.heads + 2 * arguments.kv_heads);
  const auto part = [&](int64_t first, int64_t heads, const at::Tensor& gain) {
    const at::Tensor rows =
        qkv.narrow(-1, first * head_dim, heads * head_dim).reshape({qkv.size(0), qkv.size(1), heads, head_dim});
    return gain.defined() ? plain::rms_norm(rows.to(gain.scalar_type()), gain, arguments.eps) : rows;
  };
  const auto rotated = [&](const at::Tensor& rows) {
    if (!arguments.cos.defined()) return rows;
    return plain::rope(rows.to(arguments.cos.scalar_type()), arguments.cos, arguments.sin);
  };
  const at::Tensor q = rotated(part(0, arguments.heads, arguments.q_gain));
  const at::Tensor k = rotated(part(arguments.heads, arguments.kv_heads, arguments.k_gain));
  const at::Tensor v = part(arguments.heads + arguments.kv_heads, arguments.kv_heads, arguments.v_gain);
  const auto operand = [&](const at::Tensor& rows) { return rows.to(qkv.scalar_type()).transpose(1, 2); };
  return {operand(q), operand(k), operand(v)};
}

// What a token sees, [tokens, tokens]; nothing where that is all before it.
std::optional<at::Tensor> mask_of_window(const at::Tensor& q, int64_t window) {
  const int64_t tokens = q.size(2);
  if (window == 0 || window >= tokens) return std::nullopt;
  return at::ones({tokens, tokens}, q.options().dtype(at::kBool)).tril().triu(1 - window);
}

// [batch, tokens, heads * head_dim]. Outside Python LibTorch's attention knows no meta tensors; the shape is q's.
at::Tensor mixed(const Heads& of, bool causal, int64_t window) {
  const auto mask = mask_of_window(of.q, window);
  const at::Tensor out = of.q.is_meta() ? at::empty_like(of.q)
                                        : at::scaled_dot_product_attention(of.q, of.k, of.v, mask, /*dropout_p=*/0.0,
                                                                           /*is_causal=*/causal && !mask, std::nullopt,
                                                                           /*enable_gqa=*/of.q.size(1) != of.k.size(1));
  return out.transpose(1, 2).reshape({of.q.size(0), of.q.size(2), of.q.size(1) * of.q.size(3)});
}

}  // namespace attention_detail

namespace plain {

at::Tensor attention(const at::Tensor& qkv, const AttentionArguments& arguments) {
  return attention_detail::mixed(attention_detail::heads_of(qkv, arguments), arguments.causal, arguments.window);
}

}  // namespace plain

// Forward: out, and lse [batch, heads, tokens], the log sum exp of each row of scores: our backward makes the scores
// again from it. LibTorch's attention does not give it away and its backward does not want it, so the plain form, which
// would have to make the scores a second time, says kNotKept: our backward makes NaN of it, not a wrong number.
namespace attention_op {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;
using Optional = std::optional<at::Tensor>;
using Made = std::tuple<at::Tensor, at::Tensor>;
using Gradients = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;
using Wanted = std::array<bool, 4>;  // qkv and the gains of q, k, v

constexpr double kNotKept = -std::numeric_limits<double>::infinity();

c10::SymInt check(const char* op, const at::Tensor& qkv, const AttentionArguments& given) {
  Arguments arguments(op, "qkv", qkv);
  arguments.rank("qkv", qkv, 3);
  arguments.require(given.kv_heads >= 1, "kv_heads", "at least 1", std::to_string(given.kv_heads));
  arguments.require(given.heads >= 1 && given.heads % given.kv_heads == 0, "heads",
                    "a multiple of kv_heads " + std::to_string(given.kv_heads), std::to_string(given.heads));
  arguments.require(given.window == 0 || (given.window > 0 && given.causal), "window",
                    given.causal ? "0 (all) or more" : "0 where all tokens see one another",
                    std::to_string(given.window));
  const int64_t all = given.heads + 2 * given.kv_heads;
  arguments.require(qkv.sym_size(2) % all == 0, "qkv",
                    "a last dimension of " + std::to_string(all) + " heads, q, k and v together",
                    "shape " + shape_text(qkv.sym_sizes()));
  const c10::SymInt head_dim = qkv.sym_size(2) / all;
  arguments.parameter("q_gain", given.q_gain, {head_dim}).parameter("k_gain", given.k_gain, {head_dim});
  arguments.parameter("v_gain", given.v_gain, {head_dim});
  arguments.require(given.cos.defined() == given.sin.defined(), given.cos.defined() ? "sin" : "cos",
                    "a tensor beside the other", "none");
  if (!given.cos.defined()) return head_dim;
  arguments.require(head_dim % 2 == 0, "qkv", "an even head_dim to rotate", "shape " + shape_text(qkv.sym_sizes()));
  const std::vector<c10::SymInt> table = {qkv.sym_size(1), 1, head_dim / 2};
  arguments.parameter("cos", given.cos, table).parameter("sin", given.sin, table);
  return head_dim;
}

void check_backward(const at::Tensor& d_out, const at::Tensor& qkv, const at::Tensor& out, const at::Tensor& lse,
                    const AttentionArguments& given) {
  constexpr const char* kOp = "attention_backward";
  const c10::SymInt width = check(kOp, qkv, given) * given.heads;
  const std::vector<c10::SymInt> sizes = {qkv.sym_size(0), qkv.sym_size(1), width};
  Arguments(kOp, "qkv", qkv)
      .shape("d_out", d_out, sizes)
      .shape("out", out, sizes)
      .wide_shape("lse", lse, {qkv.sym_size(0), given.heads, qkv.sym_size(1)});
}

AttentionArguments arguments_of(const Optional& q_gain, const Optional& k_gain, const Optional& v_gain,
                                const Optional& cos, const Optional& sin, int64_t heads, int64_t kv_heads, bool causal,
                                double eps, int64_t window) {
  AttentionArguments arguments;
  arguments.heads = heads;
  arguments.kv_heads = kv_heads;
  arguments.causal = causal;
  arguments.cos = or_undefined(cos);
  arguments.sin = or_undefined(sin);
  arguments.q_gain = or_undefined(q_gain);
  arguments.k_gain = or_undefined(k_gain);
  arguments.v_gain = or_undefined(v_gain);
  arguments.eps = eps;
  arguments.window = window;
  return arguments;
}

Made plain_made(const at::Tensor& qkv, const AttentionArguments& arguments) {
  const OneThread one_thread;
  const auto heads = attention_detail::heads_of(qkv, arguments);
  return {attention_detail::mixed(heads, arguments.causal, arguments.window).contiguous(),
          at::full({heads.q.size(0), heads.q.size(1), heads.q.size(2)}, kNotKept, qkv.options().dtype(wide_type(qkv)))};
}

Gradients plain_gradients(const at::Tensor& d_out, const at::Tensor& qkv, const AttentionArguments& arguments,
                          Wanted wanted) {
  const Tensors made = gradients_of({qkv, arguments.q_gain, arguments.k_gain, arguments.v_gain},
                                    {wanted[0], wanted[1], wanted[2], wanted[3]}, {d_out}, [&](const Tensors& given) {
                                      AttentionArguments here = arguments;
                                      here.q_gain = given[1];
                                      here.k_gain = given[2];
                                      here.v_gain = given[3];
                                      return Tensors{plain::attention(given[0], here)};
                                    });
  return {made[0], made[1], made[2], made[3]};
}

// Floats beside whatever qkv is, dense.
at::Tensor dense(const at::Tensor& tensor) { return tensor.defined() ? wide(tensor).contiguous() : tensor; }

AttentionArguments dense(AttentionArguments arguments) {
  for (at::Tensor* const tensor :
       {&arguments.cos, &arguments.sin, &arguments.q_gain, &arguments.k_gain, &arguments.v_gain}) {
    *tensor = dense(*tensor);
  }
  return arguments;
}

// Both of what is dense.
kernels::AttentionShape shape_of(const at::Tensor& qkv, const AttentionArguments& of) {
  const int64_t head_dim = qkv.size(2) / (of.heads + 2 * of.kv_heads);
  return {qkv.size(0), qkv.size(1), of.heads, of.kv_heads, head_dim, of.causal, static_cast<float>(of.eps), of.window};
}

template <class T>
kernels::AttentionInputsOf<T> inputs_of(const at::Tensor& qkv, const AttentionArguments& of) {
  return {data_of<T>(qkv),         data_or_null(of.cos),    data_or_null(of.sin),
          data_or_null(of.q_gain), data_or_null(of.k_gain), data_or_null(of.v_gain)};
}

Made fused_made(const at::Tensor& given, const AttentionArguments& given_arguments) {
  const at::Tensor qkv = given.contiguous();
  const AttentionArguments arguments = dense(given_arguments);
  const auto shape = shape_of(qkv, arguments);
  at::Tensor out = at::empty({shape.batch, shape.tokens, shape.heads * shape.head_dim}, qkv.options());
  at::Tensor lse = at::empty({shape.batch, shape.heads, shape.tokens}, at::kFloat);
  if (qkv.numel() == 0) return {out, lse.fill_(-std::numeric_limits<double>::infinity())};
  with_element_type(qkv, [&](auto element) {
    using T = decltype(element);
    run_attention<T>(shape, inputs_of<T>(qkv, arguments), writable_of<T>(out), lse.mutable_data_ptr<float>());
  });
  return {out, lse};
}

// The blocks' shares added in order: part 0, 1 or 2 of [blocks, 3, head_dim] -> [head_dim].
at::Tensor sum_of_blocks(const at::Tensor& shares, int64_t part) {
  const int64_t size = shares.size(2);
  at::Tensor total = at::zeros({size}, shares.options());
  float* const out = total.mutable_data_ptr<float>();
  const float* in = shares.const_data_ptr<float>() + part * size;
  for (int64_t block = 0; block < shares.size(0); ++block, in += 3 * size) {
    for (int64_t i = 0; i < size; ++i) out[i] = block == 0 ? in[i] : out[i] + in[i];
  }
  return total;
}

Gradients fused_gradients(const at::Tensor& given_d_out, const at::Tensor& given, const at::Tensor& given_out,
                          const at::Tensor& given_lse, const AttentionArguments& given_arguments, Wanted wanted) {
  const at::Tensor qkv = given.contiguous();
  const at::Tensor d_out = given_d_out.contiguous();
  const at::Tensor out = given_out.contiguous();
  const at::Tensor lse = given_lse.contiguous();
  const AttentionArguments arguments = dense(given_arguments);
  const auto shape = shape_of(qkv, arguments);
  const std::array<bool, 3> gains{wanted[1] && arguments.q_gain.defined(), wanted[2] && arguments.k_gain.defined(),
                                  wanted[3] && arguments.v_gain.defined()};
  at::Tensor d_qkv = at::empty_like(qkv);
  at::Tensor shares;
  if (gains[0] || gains[1] || gains[2]) {
    const int64_t blocks = kernels::attention_sizes(shape, true).blocks;
    shares = at::zeros({shape.batch * shape.heads * blocks, 3, shape.head_dim}, at::kFloat);
  }
  with_element_type(qkv, [&](auto element) {
    using T = decltype(element);
    const kernels::AttentionGradientsOf<T> gradients{data_of<T>(out), lse.const_data_ptr<float>(), data_of<T>(d_out),
                                                     writable_of<T>(d_qkv), writable_or_null(shares)};
    if (qkv.numel() > 0) run_attention_backward<T>(shape, inputs_of<T>(qkv, arguments), gradients);
  });
  const auto gain = [&](int64_t part) {
    const std::array<at::Tensor, 3> given_gains = {given_arguments.q_gain, given_arguments.k_gain,
                                                   given_arguments.v_gain};
    const auto at = static_cast<size_t>(part);
    return gains[at] ? sum_of_blocks(shares, part).to(given_gains[at].scalar_type()) : no_gradient(qkv);
  };
  return {wanted[0] ? d_qkv : no_gradient(qkv), gain(0), gain(1), gain(2)};
}

Made plain_forward(const at::Tensor& qkv, const Optional& q_gain, const Optional& k_gain, const Optional& v_gain,
                   const Optional& cos, const Optional& sin, int64_t heads, int64_t kv_heads, bool causal, double eps,
                   int64_t window) {
  const auto arguments = arguments_of(q_gain, k_gain, v_gain, cos, sin, heads, kv_heads, causal, eps, window);
  check("attention", qkv, arguments);
  return plain_made(qkv, arguments);
}

Made fused_forward(const at::Tensor& qkv, const Optional& q_gain, const Optional& k_gain, const Optional& v_gain,
                   const Optional& cos, const Optional& sin, int64_t heads, int64_t kv_heads, bool causal, double eps,
                   int64_t window) {
  const auto arguments = arguments_of(q_gain, k_gain, v_gain, cos, sin, heads, kv_heads, causal, eps, window);
  check("attention", qkv, arguments);
  return use_fused_bfloat16("attention", {qkv}) ? fused_made(qkv, arguments) : plain_made(qkv, arguments);
}

Made meta_forward(const at::Tensor& qkv, const Optional& q_gain, const Optional& k_gain, const Optional& v_gain,
                  const Optional& cos, const Optional& sin, int64_t heads, int64_t kv_heads, bool causal, double eps,
                  int64_t window) {
  const auto arguments = arguments_of(q_gain, k_gain, v_gain, cos, sin, heads, kv_heads, causal, eps, window);
  const c10::SymInt head_dim = check("attention", qkv, arguments);
  return {empty_dense(qkv, head_dim * heads),
          at::empty_symint({qkv.sym_size(0), heads, qkv.sym_size(1)}, qkv.options().dtype(wide_type(qkv)))};
}

Gradients plain_backward(const at::Tensor& d_out, const at::Tensor& qkv, const at::Tensor& out, const at::Tensor& lse,
                         const Optional& q_gain, const Optional& k_gain, const Optional& v_gain, const Optional& cos,
                         const Optional& sin, int64_t heads, int64_t kv_heads, bool causal, double eps, Wanted wanted,
                         int64_t window) {
  const auto arguments = arguments_of(q_gain, k_gain, v_gain, cos, sin, heads, kv_heads, causal, eps, window);
  check_backward(d_out, qkv, out, lse, arguments);
  return plain_gradients(d_out, qkv, arguments, wanted);
}

Gradients fused_backward(const at::Tensor& d_out, const at::Tensor& qkv, const at::Tensor& out, const at::Tensor& lse,
                         const Optional& q_gain, const Optional& k_gain, const Optional& v_gain, const Optional& cos,
                         const Optional& sin, int64_t heads, int64_t kv_heads, bool causal, double eps, Wanted wanted,
                         int64_t window) {
  const auto arguments = arguments_of(q_gain, k_gain, v_gain, cos, sin, heads, kv_heads, causal, eps, window);
  check_backward(d_out, qkv, out, lse, arguments);
  return use_fused_bfloat16("attention", {qkv}) ? fused_gradients(d_out, qkv, out, lse, arguments, wanted)
                                                : plain_gradients(d_out, qkv, arguments, wanted);
}

Gradients meta_backward(const at::Tensor& d_out, const at::Tensor& qkv, const at::Tensor& out, const at::Tensor& lse,
                        const Optional& q_gain, const Optional& k_gain, const Optional& v_gain, const Optional& cos,
                        const Optional& sin, int64_t heads, int64_t kv_heads, bool causal, double eps, Wanted wanted,
                        int64_t window) {
  const auto arguments = arguments_of(q_gain, k_gain, v_gain, cos, sin, heads, kv_heads, causal, eps, window);
  check_backward(d_out, qkv, out, lse, arguments);
  const auto gain = [&](bool wants, const at::Tensor& of) {
    return wants && of.defined() ? empty_dense(of) : no_gradient(qkv);
  };
  return {wanted[0] ? empty_dense(qkv) : no_gradient(qkv), gain(wanted[1], arguments.q_gain),
          gain(wanted[2], arguments.k_gain), gain(wanted[3], arguments.v_gain)};
}

class Pair : public torch::autograd::Function<Pair> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& qkv, const Optional& q_gain,
                            const Optional& k_gain, const Optional& v_gain, const Optional& cos, const Optional& sin,
                            int64_t heads, int64_t kv_heads, bool causal, double eps, int64_t window) {
    const at::AutoDispatchBelowAutograd below;
    static const auto op = find_op("attention_forward", fused_forward);
    const auto [out, lse] = op.call(qkv, q_gain, k_gain, v_gain, cos, sin, heads, kv_heads, causal, eps, window);
    context->save_for_backward({qkv, out, lse, or_undefined(q_gain), or_undefined(k_gain), or_undefined(v_gain),
                                or_undefined(cos), or_undefined(sin)});
    context->saved_data["heads"] = heads;
    context->saved_data["kv_heads"] = kv_heads;
    context->saved_data["causal"] = causal;
    context->saved_data["eps"] = eps;
    context->saved_data["window"] = window;
    return out;
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const tensor_list saved = context->get_saved_variables();
    const auto wanted = wanted_gradients(context, {true, saved[3].defined(), saved[4].defined(), saved[5].defined()});
    tensor_list result(11);
    if (std::find(wanted.begin(), wanted.end(), true) == wanted.end()) return result;
    const BelowAutograd below;
    static const auto op = find_op("attention_backward", fused_backward);
    const auto [d_qkv, d_q_gain, d_k_gain, d_v_gain] =
        op.call(grads[0], saved[0], saved[1], saved[2], as_optional(saved[3]), as_optional(saved[4]),
                as_optional(saved[5]), as_optional(saved[6]), as_optional(saved[7]),
                context->saved_data["heads"].toInt(), context->saved_data["kv_heads"].toInt(),
                context->saved_data["causal"].toBool(), context->saved_data["eps"].toDouble(),
                {wanted[0], wanted[1], wanted[2], wanted[3]}, context->saved_data["window"].toInt());
    result[0] = if_wanted(wanted[0], d_qkv);
    result[1] = if_wanted(wanted[1], d_q_gain);
    result[2] = if_wanted(wanted[2], d_k_gain);
    result[3] = if_wanted(wanted[3], d_v_gain);
    return result;
  }
};

at::Tensor pair(const at::Tensor& qkv, const Optional& q_gain, const Optional& k_gain, const Optional& v_gain,
                const Optional& cos, const Optional& sin, int64_t heads, int64_t kv_heads, bool causal, double eps,
                int64_t window) {
  Arguments("attention", "qkv", qkv).constant("cos", or_undefined(cos)).constant("sin", or_undefined(sin));
  return Pair::apply(dense_once(qkv), q_gain, k_gain, v_gain, as_optional(dense_once(or_undefined(cos))),
                     as_optional(dense_once(or_undefined(sin))), heads, kv_heads, causal, eps, window);
}

at::Tensor alone(const at::Tensor& qkv, const Optional& q_gain, const Optional& k_gain, const Optional& v_gain,
                 const Optional& cos, const Optional& sin, int64_t heads, int64_t kv_heads, bool causal, double eps,
                 int64_t window) {
  static const auto op = find_op("attention_forward", fused_forward);
  return std::get<0>(op.call(qkv, q_gain, k_gain, v_gain, cos, sin, heads, kv_heads, causal, eps, window));
}

TORCH_LIBRARY_FRAGMENT(siamese, library) {
  const std::string others =
      "Tensor? q_gain, Tensor? k_gain, Tensor? v_gain, Tensor? cos, Tensor? sin, int heads, int kv_heads, "
      "bool causal, float eps";
  const std::string window = ", int window=0";
  define_pair(library, "attention(Tensor qkv, " + others + window + ") -> Tensor", pair, alone);
  define_part(library, "attention_forward(Tensor qkv, " + others + window + ") -> (Tensor out, Tensor lse)",
              plain_forward, fused_forward, meta_forward);
  define_part(library,
              "attention_backward(Tensor d_out, Tensor qkv, Tensor out, Tensor lse, " + others + ", bool[4] wanted" +
                  window + ") -> (Tensor d_qkv, Tensor d_q_gain, Tensor d_k_gain, Tensor d_v_gain)",
              plain_backward, fused_backward, meta_backward);
}

}  // namespace attention_op

at::Tensor attention(const at::Tensor& qkv, const AttentionArguments& arguments) {
  const PartScope scope("part::attention");
  static const auto op = find_op("attention", attention_op::pair);
  return op.call(qkv, as_optional(arguments.q_gain), as_optional(arguments.k_gain), as_optional(arguments.v_gain),
                 as_optional(arguments.cos), as_optional(arguments.sin), arguments.heads, arguments.kv_heads,
                 arguments.causal, arguments.eps, arguments.window);
}

}  // namespace siamese::ops
