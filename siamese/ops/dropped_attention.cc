#include "siamese/ops/dropped_attention.h"

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "siamese/base/check.h"
#include "siamese/ops/arguments.h"
#include "siamese/ops/attention_heads.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/one_thread.h"
#include "siamese/ops/scope.h"
#include "siamese/ops/wide.h"

namespace siamese::ops {

namespace dropped_attention_detail {

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

// Some tasks: q [n, group * tokens, head_dim], k and v [n, tokens, head_dim], dropped [n, group * tokens, tokens].
struct Tasks {
  at::Tensor q, k, v, dropped;
  at::Tensor hidden;  // bool [group * tokens, tokens], scores that are not seen; undefined: all are
  double scale;       // of scores
  double kept;        // 1 / (1 - chance)

  at::Tensor weights() const {
    at::Tensor scores = at::matmul(q, k.transpose(1, 2)) * scale;
    if (hidden.defined()) scores = scores.masked_fill(hidden, -std::numeric_limits<double>::infinity());
    return at::softmax(scores, -1);
  }
  at::Tensor thinned(const at::Tensor& all) const { return all.masked_fill(dropped, 0) * kept; }

  at::Tensor out() const { return at::matmul(thinned(weights()), v); }

  // Of q, k and v.
  std::array<at::Tensor, 3> gradients(const at::Tensor& d_out) const {
    const at::Tensor p = weights();
    const at::Tensor d_v = at::matmul(thinned(p).transpose(1, 2), d_out);
    const at::Tensor d_p = thinned(at::matmul(d_out, v.transpose(1, 2)));
    const at::Tensor d_scores = p * (d_p - (d_p * p).sum(-1, /*keepdim=*/true)) * scale;
    return {at::matmul(d_scores, k), at::matmul(d_scores.transpose(1, 2), q), d_v};
  }

  Tasks one(int64_t task) const {
    const auto of = [&](const at::Tensor& all) { return all.narrow(0, task, 1); };
    return {of(q), of(k), of(v), of(dropped), hidden, scale, kept};
  }
};

// body(tasks, index of the first) for each task by itself; on another device for all at once.
template <class Body>
void run(const Tasks& tasks, const Body& body) {
  if (!tasks.q.is_cpu()) return body(tasks, 0, tasks.q.size(0));
  for_each_task(tasks.q.size(0), [&](int64_t task) { body(tasks.one(task), task, 1); });
}

// q: [n, group, tokens, head_dim].
Tasks tasks_of(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& dropped, bool causal,
               double chance) {
  const int64_t n = q.size(0), group = q.size(1), tokens = q.size(2), head_dim = q.size(3);
  at::Tensor hidden;
  if (causal) {
    hidden = at::ones({tokens, tokens}, dropped.options()).triu(1).repeat({group, 1});
  }
  return {wide(q).reshape({n, group * tokens, head_dim}),
          wide(k),
          wide(v),
          dropped.reshape({n, group * tokens, tokens}),
          hidden,
          1 / std::sqrt(static_cast<double>(head_dim)),
          1 / (1 - chance)};
}

class Mixing : public torch::autograd::Function<Mixing> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const at::Tensor& dropped, bool causal, double chance) {
    const at::AutoDispatchBelowAutograd below;
    context->save_for_backward({q, k, v, dropped});
    context->saved_data["causal"] = causal;
    context->saved_data["chance"] = chance;
    const Tasks all = tasks_of(q, k, v, dropped, causal, chance);
    const at::Tensor out = at::empty_like(all.q);
    run(all, [&](const Tasks& tasks, int64_t first, int64_t count) { out.narrow(0, first, count).copy_(tasks.out()); });
    return out.view(q.sizes()).to(q.scalar_type());
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    if (c10::GradMode::is_enabled()) {
      throw UsageError("attention with dropout: expected first derivatives, got create_graph: there is no second");
    }
    const at::AutoDispatchBelowAutograd below;
    const tensor_list saved = context->get_saved_variables();
    const at::Tensor& q = saved[0];
    const Tasks all = tasks_of(q, saved[1], saved[2], saved[3], context->saved_data["causal"].toBool(),
                               context->saved_data["chance"].toDouble());
    const at::Tensor d_out = wide(grads[0]).reshape(all.q.sizes());
    const std::array<at::Tensor, 3> made = {at::empty_like(all.q), at::empty_like(all.k), at::empty_like(all.v)};
    run(all, [&](const Tasks& tasks, int64_t first, int64_t count) {
      const auto gradients = tasks.gradients(d_out.narrow(0, first, count));
      for (size_t i = 0; i < made.size(); ++i) made[i].narrow(0, first, count).copy_(gradients[i]);
    });
    return {made[0].view(q.sizes()).to(q.scalar_type()),
            made[1].to(q.scalar_type()),
            made[2].to(q.scalar_type()),
            {},
            {},
            {}};
  }
};

void check(const at::Tensor& qkv, const AttentionArguments& given, const at::Tensor& dropped, double chance) {
  const Arguments arguments("dropped_attention", "qkv", qkv);
  arguments.rank("qkv", qkv, 3);
  arguments.require(given.kv_heads >= 1, "kv_heads", "at least 1", std::to_string(given.kv_heads));
  arguments.require(given.heads >= 1 && given.heads % given.kv_heads == 0, "heads",
                    "a multiple of kv_heads " + std::to_string(given.kv_heads), std::to_string(given.heads));
  const int64_t all = given.heads + 2 * given.kv_heads;
  arguments.require(qkv.size(2) % all == 0, "qkv", "a last dimension of " + std::to_string(all) + " heads",
                    "shape " + shape_text(qkv.sym_sizes()));
  const std::vector<int64_t> sizes = {qkv.size(0), given.heads, qkv.size(1), qkv.size(1)};
  arguments.require(dropped.defined() && dropped.scalar_type() == at::kBool && dropped.sizes() == sizes &&
                        dropped.device() == qkv.device(),
                    "dropped", c10::str("a bool tensor of shape ", at::IntArrayRef(sizes), " where qkv is"),
                    dropped.defined() ? c10::str(dropped.scalar_type(), " ", dropped.sizes()) : "none");
  arguments.require(given.window == 0, "window", "0: attention that drops weights has none",
                    std::to_string(given.window));
  arguments.require(chance >= 0 && chance < 1, "chance", "a share from 0 to below 1", std::to_string(chance));
  if (mode() == Mode::fused) {
    throw UsageError("engine.ops: expected auto or plain with model.dropout.attention, got fused: there is no kernel");
  }
}

}  // namespace dropped_attention_detail

at::Tensor dropped_attention(const at::Tensor& qkv, const AttentionArguments& arguments, const at::Tensor& dropped,
                             double chance) {
  using namespace dropped_attention_detail;
  const PartScope scope("part::attention");
  check(qkv, arguments, dropped, chance);
  const int64_t batch = qkv.size(0), tokens = qkv.size(1), kv_heads = arguments.kv_heads;
  const int64_t head_dim = qkv.size(2) / (arguments.heads + 2 * kv_heads);
  const int64_t group = arguments.heads / kv_heads;
  const AttentionHeads of = attention_heads(qkv, arguments);
  const auto rows = [](const at::Tensor& heads) { return heads.transpose(1, 2).contiguous(); };
  const at::Tensor q = rows(of.q).view({batch * kv_heads, group, tokens, head_dim});
  const at::Tensor k = rows(of.k).view({batch * kv_heads, tokens, head_dim});
  const at::Tensor v = rows(of.v).view({batch * kv_heads, tokens, head_dim});
  const at::Tensor out = Mixing::apply(q, k, v, dropped, arguments.causal, chance);
  return out.view({batch, arguments.heads, tokens, head_dim})
      .transpose(1, 2)
      .reshape({batch, tokens, arguments.heads * head_dim});
}

}  // namespace siamese::ops
