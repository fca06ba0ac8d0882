// One part without a backward: whoever asks for its gradient is told that there is none. It is the one op that changes
// its arguments, as its schema says.
#include "siamese/ops/cached_attention.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "siamese/kernels/cached_attention.h"
#include "siamese/ops/arguments.h"
#include "siamese/ops/library.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/norm.h"
#include "siamese/ops/one_thread.h"
#include "siamese/ops/pointers.h"
#include "siamese/ops/rope.h"
#include "siamese/ops/scope.h"

namespace siamese::ops {
namespace cached_attention_op {

using Optional = std::optional<at::Tensor>;

// Everything but the tensors that are written to.
struct Given {
  const at::Tensor& qkv;
  at::Tensor q_gain, k_gain, v_gain, cos, sin;
  at::IntArrayRef past;
  int64_t heads, kv_heads;
  double eps;
  int64_t window;

  c10::SymInt head_dim() const { return qkv.sym_size(2) / (heads + 2 * kv_heads); }
};

// The words of a refusal are made when there is one: this runs once a token and layer.
void check_past(const Arguments& arguments, const Given& given, const at::Tensor& keys) {
  const c10::SymInt tokens = given.qkv.sym_size(1);
  if (given.qkv.sym_size(0) != static_cast<int64_t>(given.past.size())) {
    arguments.require(false, "past", "a number of each sample", std::to_string(given.past.size()));
  }
  for (const int64_t past : given.past) {
    constexpr int64_t kMost = int64_t{1} << 62;  // no sum with it overflows
    if (past >= 0 && past < kMost && (tokens <= 1 || tokens + past <= keys.sym_size(2))) continue;
    arguments.require(false, "past", "0 or more, and room in the cache for several tokens at once",
                      std::to_string(past) + " beside keys of shape " + shape_text(keys.sym_sizes()));
  }
}

void check(const Given& given, const at::Tensor& keys, const at::Tensor& values) {
  const at::Tensor& qkv = given.qkv;
  Arguments arguments("cached_attention", "qkv", qkv);
  arguments.rank("qkv", qkv, 3).rank("keys", keys, 4);
  if (given.kv_heads < 1 || given.heads < 1 || given.heads % given.kv_heads != 0) {
    arguments.require(false, "heads", "a multiple of kv_heads, both at least 1",
                      std::to_string(given.heads) + " and " + std::to_string(given.kv_heads));
  }
  if (given.window < 0) arguments.require(false, "window", "0 (all) or more", std::to_string(given.window));
  if (qkv.sym_size(2) % (given.heads + 2 * given.kv_heads) != 0) {
    arguments.require(false, "qkv", "a last dimension of the heads of q, k and v",
                      "shape " + shape_text(qkv.sym_sizes()));
  }
  const c10::SymInt head_dim = given.head_dim();
  arguments.shape("keys", keys, {qkv.sym_size(0), given.kv_heads, keys.sym_size(2), head_dim});
  arguments.shape("values", values, keys.sym_sizes());
  arguments.require(keys.sym_size(2) >= 1, "keys", "room for a token", "none");
  arguments.shape("q_gain", given.q_gain, {head_dim}).shape("k_gain", given.k_gain, {head_dim});
  arguments.shape("v_gain", given.v_gain, {head_dim});
  check_past(arguments, given, keys);
  arguments.require(given.cos.defined() == given.sin.defined(), given.cos.defined() ? "sin" : "cos",
                    "a tensor beside the other", "none");
  if (!given.cos.defined()) return;
  arguments.require(head_dim % 2 == 0, "qkv", "an even head_dim to rotate", "an odd one");
  c10::SymDimVector table = {qkv.sym_size(1), 1, head_dim / 2};
  if (given.cos.dim() == 4) table.insert(table.begin(), qkv.sym_size(0));
  arguments.shape("cos", given.cos, table).shape("sin", given.sin, table);
}

at::Tensor empty_result(const Given& given) {
  return at::empty_symint({given.qkv.sym_size(0), given.qkv.sym_size(1), given.head_dim() * given.heads},
                          given.qkv.options());
}

// Heads of all samples, [batch, heads, tokens, head_dim], with norm and rotation.
at::Tensor plain_heads(const Given& given, int64_t first, int64_t heads, const at::Tensor& gain, bool rotated) {
  const int64_t dim = given.qkv.size(2) / (given.heads + 2 * given.kv_heads);
  at::Tensor rows = given.qkv.narrow(-1, first * dim, heads * dim);
  rows = rows.reshape({given.qkv.size(0), given.qkv.size(1), heads, dim});
  if (gain.defined()) rows = plain::rms_norm(rows, gain, given.eps);
  if (rotated && given.cos.defined()) rows = plain::rope(rows, given.cos, given.sin);
  return rows.transpose(1, 2);
}

// [tokens, slots]: which of the tokens in the first slots of the cache each of the last `tokens` sees.
at::Tensor seen_in_cache(const Given& given, int64_t past, int64_t tokens, int64_t slots, int64_t capacity) {
  const auto options = at::TensorOptions().dtype(at::kLong).device(given.qkv.device());
  const at::Tensor query = at::arange(past, past + tokens, options).unsqueeze(1);
  // The newest token that stands in a slot.
  const int64_t last = past + tokens - 1;
  const at::Tensor key = last - (last - at::arange(slots, options)).remainder(capacity);
  const int64_t window = given.window > 0 ? given.window : capacity;
  return key.le(query).logical_and(key.gt(query - window));
}

// Sample by sample: each has its own tokens to look at.
at::Tensor plain_forward(const Given& given, const at::Tensor& keys, const at::Tensor& values) {
  check(given, keys, values);
  at::Tensor out = empty_result(given);
  if (given.qkv.numel() == 0) return out;
  const OneThread one_thread;
  const at::Tensor q = plain_heads(given, 0, given.heads, given.q_gain, true);
  const at::Tensor k = plain_heads(given, given.heads, given.kv_heads, given.k_gain, true);
  const at::Tensor v = plain_heads(given, given.heads + given.kv_heads, given.kv_heads, given.v_gain, false);
  const int64_t tokens = q.size(2), capacity = keys.size(2);
  for (int64_t sample = 0; sample < q.size(0); ++sample) {
    const int64_t past = given.past[static_cast<size_t>(sample)];
    keys[sample].narrow(1, past % capacity, tokens).copy_(k[sample]);
    values[sample].narrow(1, past % capacity, tokens).copy_(v[sample]);
    const int64_t seen = std::min(past + tokens, capacity);
    std::optional<at::Tensor> mask;  // one token sees all that is there, of several the last
    if (tokens > 1 || given.window > 0) mask = seen_in_cache(given, past, tokens, seen, capacity);
    const at::Tensor mixed = at::scaled_dot_product_attention(
        q.narrow(0, sample, 1), keys.narrow(0, sample, 1).narrow(2, 0, seen),
        values.narrow(0, sample, 1).narrow(2, 0, seen), mask, /*dropout_p=*/0.0, /*is_causal=*/false, std::nullopt,
        /*enable_gqa=*/given.heads != given.kv_heads);
    out[sample].view({tokens, given.heads, q.size(3)}).copy_(mixed[0].transpose(0, 1));
  }
  return out;
}

// Without a past, many tokens are what ops/attention.h is for.
at::Tensor without_past(const Given& given) {
  using Forward =
      std::tuple<at::Tensor, at::Tensor>(const at::Tensor&, const Optional&, const Optional&, const Optional&,
                                         const Optional&, const Optional&, int64_t, int64_t, bool, double, int64_t);
  static const auto op = find_op("attention_forward", static_cast<Forward*>(nullptr));
  const auto table = [](const at::Tensor& angles) { return as_optional(angles.dim() == 4 ? angles[0] : angles); };
  const bool rotated = given.cos.defined();
  return std::get<0>(op.call(given.qkv, as_optional(given.q_gain), as_optional(given.k_gain), as_optional(given.v_gain),
                             rotated ? table(given.cos) : std::nullopt, rotated ? table(given.sin) : std::nullopt,
                             given.heads, given.kv_heads, true, given.eps, given.window));
}

at::Tensor dense(const at::Tensor& tensor) { return tensor.defined() ? tensor.contiguous() : tensor; }

at::Tensor fused_forward(const Given& given, const at::Tensor& keys, const at::Tensor& values) {
  check(given, keys, values);
  const bool in_rows = keys.is_contiguous() && values.is_contiguous();
  if (!use_fused("cached_attention", {given.qkv}) || !in_rows) return plain_forward(given, keys, values);
  if (given.qkv.numel() == 0) return empty_result(given);
  const at::Tensor qkv = given.qkv.contiguous();
  const std::array<at::Tensor, 5> others = {dense(given.cos), dense(given.sin), dense(given.q_gain),
                                            dense(given.k_gain), dense(given.v_gain)};
  const kernels::AttentionShape shape{.batch = qkv.size(0),
                                      .tokens = qkv.size(1),
                                      .heads = given.heads,
                                      .kv_heads = given.kv_heads,
                                      .head_dim = keys.size(3),
                                      .eps = static_cast<float>(given.eps),
                                      .window = given.window};
  const kernels::AttentionInputs inputs{
      .qkv = qkv.const_data_ptr<float>(),
      .cos = data_or_null(others[0]),
      .sin = data_or_null(others[1]),
      .q_gain = data_or_null(others[2]),
      .k_gain = data_or_null(others[3]),
      .v_gain = data_or_null(others[4]),
  };
  const bool each = given.cos.defined() && given.cos.dim() == 4;
  const kernels::KeyValueCache cache{.keys = keys.mutable_data_ptr<float>(),
                                     .values = values.mutable_data_ptr<float>(),
                                     .past = given.past.data(),
                                     .capacity = keys.size(2),
                                     .angles_stride = each ? shape.tokens * shape.head_dim / 2 : 0};
  const int64_t longest = *std::max_element(given.past.begin(), given.past.end());
  const bool only_fill = longest == 0 && shape.tokens > 1 && !(each && shape.batch > 1);  // it knows one table
  const at::Tensor out = only_fill ? without_past(given) : empty_result(given);
  float* const out_data = only_fill ? nullptr : out.mutable_data_ptr<float>();
  constexpr int64_t kWorthAThread = int64_t{1} << 14;  // multiply-adds, whose keys and values come from memory
  const int64_t seen = only_fill ? 1 : std::min(longest + shape.tokens, cache.capacity);
  const int64_t work = 2 * shape.tokens * seen * shape.heads / shape.kv_heads * shape.head_dim;
  at::parallel_for(0, shape.tasks(), std::max<int64_t>(1, kWorthAThread / std::max<int64_t>(1, work)),
                   [&](int64_t begin, int64_t end) {
                     static thread_local std::vector<float> scratch;
                     const auto size = static_cast<size_t>(kernels::cached_attention_scratch(shape, cache));
                     if (scratch.size() < size) scratch.resize(size);
                     kernels::cached_attention(shape, inputs, cache, out_data, scratch.data(), begin, end);
                   });
  return out;
}

at::Tensor meta_forward(const Given& given, const at::Tensor& keys, const at::Tensor& values) {
  check(given, keys, values);
  return empty_result(given);
}

template <at::Tensor (*kRun)(const Given&, const at::Tensor&, const at::Tensor&)>
at::Tensor part(const at::Tensor& qkv, const at::Tensor& keys, const at::Tensor& values, const Optional& q_gain,
                const Optional& k_gain, const Optional& v_gain, const Optional& cos, const Optional& sin,
                at::IntArrayRef past, int64_t heads, int64_t kv_heads, double eps, int64_t window) {
  const Given given{qkv,
                    or_undefined(q_gain),
                    or_undefined(k_gain),
                    or_undefined(v_gain),
                    or_undefined(cos),
                    or_undefined(sin),
                    past,
                    heads,
                    kv_heads,
                    eps,
                    window};
  // LibTorch counts the changes of what an op returns, not of what it only writes to.
  keys.unsafeGetTensorImpl()->bump_version();
  values.unsafeGetTensorImpl()->bump_version();
  return kRun(given, keys, values);
}

TORCH_LIBRARY_FRAGMENT(siamese, library) {
  define_part(library,
              "cached_attention(Tensor qkv, Tensor(a!) keys, Tensor(b!) values, Tensor? q_gain, Tensor? k_gain, "
              "Tensor? v_gain, Tensor? cos, Tensor? sin, int[] past, int heads, int kv_heads, float eps, "
              "int window=0) -> Tensor",
              part<plain_forward>, part<fused_forward>, part<meta_forward>);
}

}  // namespace cached_attention_op

at::Tensor cached_attention(const at::Tensor& qkv, const AttentionArguments& arguments, const at::Tensor& keys,
                            const at::Tensor& values, at::IntArrayRef past) {
  using namespace cached_attention_op;
  const PartScope scope("part::attention");
  static const auto op = find_op("cached_attention", part<fused_forward>);
  return op.call(qkv, keys, values, as_optional(arguments.q_gain), as_optional(arguments.k_gain),
                 as_optional(arguments.v_gain), as_optional(arguments.cos), as_optional(arguments.sin), past,
                 arguments.heads, arguments.kv_heads, arguments.eps, arguments.window);
}

}  // namespace siamese::ops
