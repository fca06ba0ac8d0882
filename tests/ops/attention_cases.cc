#include <cmath>
#include <limits>

#include "tests/ops/op_cases.h"
#include "tests/support/tensors.h"

#include "siamese/ops/cached_attention.h"
#include "siamese/ops/one_thread.h"
#include "siamese/ops/rope.h"

namespace siamese::ops {
namespace attention_cases_detail {

using testing::randn;

struct Case {
  std::string what;
  at::Tensor qkv;
  int64_t heads, kv_heads;
  bool causal, rope;
  std::string gains;  // of "qkv"
  int64_t window = 0;
};

// Inputs: qkv, cos and sin if they rotate, then the gains in order.
OpCase case_of(const Case& test) {
  const int64_t head_dim = test.qkv.size(2) / (test.heads + 2 * test.kv_heads);
  Tensors inputs = {test.qkv};
  const at::Tensor angles = randn({test.qkv.size(1), 1, head_dim / 2}, 2);
  if (test.rope) inputs.insert(inputs.end(), {angles.cos(), angles.sin()});
  for (size_t i = 0; i < test.gains.size(); ++i) inputs.push_back(randn({head_dim}, 3 + i) + 1);
  const auto arguments_of = [test](const Tensors& t) {
    AttentionArguments arguments{
        .heads = test.heads, .kv_heads = test.kv_heads, .causal = test.causal, .window = test.window, .eps = 1e-5};
    size_t next = 1;
    if (test.rope) arguments.cos = t[next++];
    if (test.rope) arguments.sin = t[next++];
    if (test.gains.find('q') != std::string::npos) arguments.q_gain = t[next++];
    if (test.gains.find('k') != std::string::npos) arguments.k_gain = t[next++];
    if (test.gains.find('v') != std::string::npos) arguments.v_gain = t[next++];
    return arguments;
  };
  OpCase result{"attention", test.what, inputs,
                [=](const Tensors& t) { return Tensors{attention(t[0], arguments_of(t))}; },
                [=](const Tensors& t) { return Tensors{plain::attention(t[0], arguments_of(t))}; }};
  if (test.rope) result.constant = 0b110;
  return result;
}

}  // namespace attention_cases_detail

std::vector<OpCase> attention_cases() {
  using namespace attention_cases_detail;
  std::vector<OpCase> cases;
  for (const Case& test : std::vector<Case>{
           {"causal with everything", randn({2, 7, 8 * 6}, 1), 4, 2, true, true, "qkv"},
           {"causal, bare", randn({1, 33, 3 * 9}, 1), 1, 1, true, false, ""},
           {"in a window, with everything", randn({2, 9, 8 * 6}, 1), 4, 2, true, true, "qkv", 4},
           {"in a window, bare", randn({1, 33, 3 * 9}, 1), 1, 1, true, false, "", 5},
           {"in a window of all tokens", randn({1, 7, 3 * 4}, 1), 1, 1, true, false, "", 7},
           {"of all tokens, one gain", randn({2, 9, 5 * 8}, 1), 3, 1, false, false, "k"},
           {"of all tokens, rotated", randn({1, 5, 12 * 4}, 1), 4, 4, false, true, "qk"},
           {"of one token", randn({3, 1, 6 * 8}, 1), 2, 2, true, true, "v"},
           {"of no samples", randn({0, 5, 4 * 8}, 1), 2, 1, true, true, "qk"},
           {"of no tokens", randn({2, 0, 4 * 8}, 1), 2, 1, true, true, "qkv"},
       }) {
    cases.push_back(case_of(test));
  }
  return cases;
}

std::vector<OpCase> rope_cases() {
  using testing::randn;
  const auto call = [](const Tensors& t) { return Tensors{ops::rope(t[0], t[1], t[2])}; };
  const auto plain = [](const Tensors& t) { return Tensors{plain::rope(t[0], t[1], t[2])}; };
  const auto cos = [](int64_t tokens, int64_t half) { return randn({tokens, 1, half}, 2).cos(); };
  const auto sin = [](int64_t tokens, int64_t half) { return randn({tokens, 1, half}, 2).sin(); };
  std::vector<OpCase> cases = {
      {"rope", "of a batch", {randn({2, 5, 3, 34}, 1), cos(5, 17), sin(5, 17)}, call, plain},
      {"rope", "of one sample", {randn({5, 2, 8}, 1), cos(5, 4), sin(5, 4)}, call, plain},
      {"rope", "of no tokens", {randn({2, 0, 3, 8}, 1), cos(0, 4), sin(0, 4)}, call, plain},
      {"rope", "of no heads", {randn({2, 5, 0, 8}, 1), cos(5, 4), sin(5, 4)}, call, plain},
  };
  for (OpCase& test : cases) {
    test.constant = 0b110;
    test.linear = true;
  }
  return cases;
}

// Written out: there is no plain form beside the op's own. The op writes into keys and values: here
// into copies.
std::vector<OpCase> cached_attention_cases() {
  using testing::randn;
  const auto of = [&](const std::string& what, int64_t heads, int64_t kv_heads, int64_t tokens,
                      const std::vector<int64_t>& past) {
    constexpr int64_t kCapacity = 9, kDim = 6;
    const auto batch = static_cast<int64_t>(past.size());
    const std::vector<int64_t> held = {batch, kv_heads, kCapacity, kDim};
    const at::Tensor held_keys = randn(held, 2), held_values = randn(held, 3);
    const auto call = [=](const Tensors& t) {
      const AttentionArguments arguments{.heads = heads, .kv_heads = kv_heads};
      const at::Tensor keys = held_keys.to(t[0].options(), false, true),
                       values = held_values.to(t[0].options(), false, true);
      return Tensors{cached_attention(t[0], arguments, keys, values, past), keys, values};
    };
    const auto plain = [=](const Tensors& t) {
      const at::Tensor keys = held_keys.to(t[0].options(), false, true),
                       values = held_values.to(t[0].options(), false, true);
      std::vector<at::Tensor> out;
      for (int64_t sample = 0; sample < batch; ++sample) {
        const int64_t before = past[static_cast<size_t>(sample)], all = before + tokens;
        const at::Tensor rows = t[0][sample].view({tokens, heads + 2 * kv_heads, kDim}).transpose(0, 1);
        keys[sample].narrow(1, before, tokens).copy_(rows.narrow(0, heads, kv_heads));
        values[sample].narrow(1, before, tokens).copy_(rows.narrow(0, heads + kv_heads, kv_heads));
        const at::Tensor k = keys[sample].narrow(1, 0, all).repeat_interleave(heads / kv_heads, 0);
        const at::Tensor v = values[sample].narrow(1, 0, all).repeat_interleave(heads / kv_heads, 0);
        const at::Tensor later = at::ones({tokens, all}, t[0].options().dtype(at::kBool)).triu(before + 1);
        const at::Tensor scores =
            at::matmul(rows.narrow(0, 0, heads), k.transpose(1, 2)) / std::sqrt(static_cast<double>(kDim));
        const at::Tensor p = at::softmax(scores.masked_fill(later, -std::numeric_limits<double>::infinity()), -1);
        out.push_back(at::matmul(p, v).transpose(0, 1).reshape({tokens, heads * kDim}));
      }
      return Tensors{at::stack(out), keys, values};
    };
    return OpCase{"cached_attention", what, {randn({batch, tokens, (heads + 2 * kv_heads) * kDim}, 1)}, call, plain,
                  /*tolerance=*/1e-5,
                  /*linear=*/false,
                  /*constant=*/0b1};
  };
  return {of("of one token", 4, 2, 1, {3, 8}), of("of several", 3, 1, 4, {0, 5}), of("of a prompt", 2, 2, 7, {0})};
}

}  // namespace siamese::ops
