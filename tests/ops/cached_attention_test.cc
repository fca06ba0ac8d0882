#include "siamese/ops/cached_attention.h"

#include <limits>

#include "tests/support/tensors.h"

#include "siamese/base/check.h"
#include "siamese/ops/mode.h"

namespace siamese::ops {
namespace cached_attention_test {

using testing::leaf;
using testing::randn;

struct Setting {
  int64_t batch, tokens, heads, kv_heads, head_dim;
  bool rope, gains;
};

const Setting kSettings[] = {
    {2, 11, 4, 2, 8, true, true}, {1, 40, 2, 2, 34, true, false}, {3, 9, 6, 1, 17, false, true}};

// Whole sequences and a cache for them.
struct Sequences {
  Sequences(const Setting& setting, int64_t capacity, at::ScalarType type, bool strided = false) : s(setting) {
    // Numbers that float holds exactly, so that both types see the same.
    const auto numbers = [type](at::IntArrayRef sizes, uint64_t seed) {
      return (randn(sizes, seed) + 0.2).to(at::kFloat).to(type);
    };
    qkv = numbers({s.batch, s.tokens, (s.heads + 2 * s.kv_heads) * s.head_dim}, 1);
    arguments = {.heads = s.heads, .kv_heads = s.kv_heads, .eps = 1e-5};
    if (s.gains) {
      arguments.q_gain = numbers({s.head_dim}, 2);
      arguments.k_gain = numbers({s.head_dim}, 3);
      arguments.v_gain = numbers({s.head_dim}, 4);
    }
    if (s.rope) {
      const at::Tensor angles = randn({s.tokens, 1, s.head_dim / 2}, 5) * 3;
      arguments.cos = angles.cos().to(at::kFloat).to(type);
      arguments.sin = angles.sin().to(at::kFloat).to(type);
    }
    const auto rows = [&] {
      const at::Tensor wide = at::zeros({s.batch, s.kv_heads, capacity, s.head_dim + (strided ? 3 : 0)}, type);
      return wide.narrow(-1, 0, s.head_dim);
    };
    keys = rows();
    values = rows();
  }

  // The tokens [begin, end) of all sequences.
  at::Tensor pass(int64_t begin, int64_t end) const {
    AttentionArguments part = arguments;
    if (s.rope) part.cos = part.cos.narrow(0, begin, end - begin);
    if (s.rope) part.sin = part.sin.narrow(0, begin, end - begin);
    const std::vector<int64_t> past(static_cast<size_t>(s.batch), begin);
    return cached_attention(qkv.narrow(1, begin, end - begin), part, keys, values, past);
  }

  // One token of each sequence, where it stands.
  at::Tensor step(const std::vector<int64_t>& past) const {
    AttentionArguments part = arguments;
    std::vector<at::Tensor> rows, cos, sin;
    for (size_t i = 0; i < past.size(); ++i) {
      rows.push_back(qkv[static_cast<int64_t>(i)].narrow(0, past[i], 1));
      if (s.rope) cos.push_back(part.cos.narrow(0, past[i], 1));
      if (s.rope) sin.push_back(part.sin.narrow(0, past[i], 1));
    }
    if (s.rope) part.cos = at::stack(cos);
    if (s.rope) part.sin = at::stack(sin);
    return cached_attention(at::stack(rows), part, keys, values, past);
  }

  Setting s;
  at::Tensor qkv, keys, values;
  AttentionArguments arguments;
};

// In chunks, with and without a past, then token by token; fused, plain, and with a cache that is no rows of its own.
TEST(CachedAttention, EqualsAttentionToTheWholeSequence) {
  for (const Setting& s : kSettings) {
    const Sequences exact(s, s.tokens, at::kDouble);
    const at::Tensor whole = plain::attention(exact.qkv, exact.arguments);
    for (const auto& [type, strided, tolerance] :
         {std::tuple{at::kDouble, false, 1e-13}, {at::kFloat, false, 5e-6}, {at::kFloat, true, 5e-6}}) {
      const Sequences sequences(s, s.tokens, type, strided);
      std::vector<at::Tensor> parts = {sequences.pass(0, 3), sequences.pass(3, 5)};
      for (int64_t token = 5; token < s.tokens; ++token) parts.push_back(sequences.pass(token, token + 1));
      testing::expect_relative(at::cat(parts, 1), whole, tolerance, c10::toString(type));
      const Sequences one_by_one(s, s.tokens, type, strided);
      parts.clear();
      for (int64_t token = 0; token < s.tokens; ++token) parts.push_back(one_by_one.pass(token, token + 1));
      testing::expect_relative(at::cat(parts, 1), whole, tolerance, "one by one");
      testing::expect_relative(one_by_one.keys, sequences.keys, 1e-6, "what is kept");
    }
  }
}

// Sequences whose prompts have other lengths go on together.
TEST(CachedAttention, SequencesStandAtTheirOwnTokens) {
  const Setting s{2, 12, 4, 2, 10, true, true};
  const Sequences exact(s, s.tokens, at::kDouble);
  const at::Tensor whole = plain::attention(exact.qkv, exact.arguments);
  for (const auto& [type, tolerance] : {std::pair{at::kDouble, 1e-13}, {at::kFloat, 5e-6}}) {
    const Sequences sequences(s, s.tokens, type);
    sequences.pass(0, 6);  // of the second only three are right, the others are written over
    std::vector<int64_t> past = {6, 3};
    for (; past[0] < s.tokens; ++past[0], ++past[1]) {
      const at::Tensor out = sequences.step(past);
      for (int64_t i = 0; i < 2; ++i) {
        testing::expect_relative(out[i][0], whole[i][past[static_cast<size_t>(i)]], tolerance, "sequence");
      }
    }
  }
}

// Past the capacity: attention to the last tokens alone.
TEST(CachedAttention, ForgetsTheOldestToken) {
  constexpr int64_t kCapacity = 5;
  const Setting s{2, 17, 4, 2, 8, true, true};
  const Sequences exact(s, kCapacity, at::kDouble);
  for (const auto& [type, tolerance] : {std::pair{at::kDouble, 1e-13}, {at::kFloat, 5e-6}}) {
    const Sequences sequences(s, kCapacity, type);
    sequences.pass(0, kCapacity);
    for (int64_t token = kCapacity; token < s.tokens; ++token) {
      const int64_t first = token + 1 - kCapacity;
      AttentionArguments window = exact.arguments;
      window.cos = window.cos.narrow(0, first, kCapacity);
      window.sin = window.sin.narrow(0, first, kCapacity);
      const at::Tensor seen = plain::attention(exact.qkv.narrow(1, first, kCapacity), window);
      testing::expect_relative(sequences.step({token, token}).select(1, 0), seen.select(1, kCapacity - 1), tolerance,
                               "token " + std::to_string(token));
    }
  }
}

// With a window: attention in that window, wherever the sequence stands.
TEST(CachedAttention, AWindowIsThatOfAttention) {
  const Setting s{2, 17, 4, 2, 8, true, true};
  for (const int64_t window : {1, 3, 9}) {
    for (const auto& [type, tolerance] : {std::pair{at::kDouble, 1e-13}, {at::kFloat, 5e-6}}) {
      Sequences exact(s, s.tokens, at::kDouble), sequences(s, 9, type);
      exact.arguments.window = sequences.arguments.window = window;
      const at::Tensor whole = plain::attention(exact.qkv, exact.arguments);
      testing::expect_relative(sequences.pass(0, 5), whole.narrow(1, 0, 5), tolerance, "at once");
      testing::expect_relative(sequences.pass(5, 8), whole.narrow(1, 5, 3), tolerance, "after others");
      for (int64_t token = 8; token < s.tokens; ++token) {
        testing::expect_relative(sequences.step({token, token}).select(1, 0), whole.select(1, token), tolerance,
                                 "window " + std::to_string(window) + " token " + std::to_string(token));
      }
    }
  }
}

TEST(CachedAttention, RefusesWhatItCannotDo) {
  const Setting s{1, 4, 2, 1, 8, true, true};
  const auto refused = [&](const std::string& what, const auto& change) {
    Sequences sequences(s, 7, at::kFloat);
    std::vector<int64_t> past = {2};
    change(sequences, past);
    try {
      cached_attention(sequences.qkv, sequences.arguments, sequences.keys, sequences.values, past);
      ADD_FAILURE() << what << " was taken";
    } catch (const UsageError& error) {
      const std::string text = error.what();
      EXPECT_TRUE(text.starts_with("siamese::cached_attention: " + what + ": expected")) << text;
      EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    }
  };
  refused("past", [](Sequences&, auto& past) { past = {4}; });
  refused("past", [](Sequences&, auto& past) { past = {-1}; });
  refused("past", [](Sequences&, auto& past) { past = {}; });
  refused("past", [](Sequences&, auto& past) { past = {1, 1}; });
  refused("qkv", [](Sequences& with, auto&) { with.qkv = with.qkv[0]; });
  refused("qkv", [](Sequences& with, auto&) { with.qkv = with.qkv.narrow(2, 0, 31); });
  refused("heads", [](Sequences& with, auto&) { with.arguments.heads = 0; });
  refused("heads", [](Sequences& with, auto&) { with.arguments.kv_heads = 4; });
  refused("window", [](Sequences& with, auto&) { with.arguments.window = -1; });
  refused("keys", [](Sequences& with, auto&) { with.keys = with.keys[0]; });
  refused("keys", [](Sequences& with, auto&) { with.keys = with.keys.narrow(3, 0, 7); });
  refused("keys", [](Sequences& with, auto&) { with.keys = with.keys.to(at::kDouble); });
  refused("keys", [](Sequences& with, auto&) { with.keys = with.values = with.keys.narrow(2, 0, 0); });
  refused("values", [](Sequences& with, auto&) { with.values = with.values.narrow(2, 0, 6); });
  refused("q_gain", [](Sequences& with, auto&) { with.arguments.q_gain = at::ones({7}); });
  refused("sin", [](Sequences& with, auto&) { with.arguments.sin = at::Tensor(); });
  refused("cos", [](Sequences& with, auto&) { with.arguments.cos = with.arguments.cos.narrow(0, 0, 3); });
  refused("cos", [](Sequences& with, auto&) {
    with.arguments.cos = at::stack({with.arguments.cos, with.arguments.cos});
  });
}

TEST(CachedAttention, HasNoGradientAndMarksWhatItChanges) {
  const Setting s{1, 4, 2, 1, 8, false, false};
  const Sequences sequences(s, 7, at::kFloat);
  const int64_t before = sequences.keys._version();
  const at::Tensor y =
      cached_attention(leaf(sequences.qkv), sequences.arguments, sequences.keys, sequences.values, {0});
  EXPECT_GT(sequences.keys._version(), before);
  EXPECT_ANY_THROW(y.sum().backward()) << "it has no gradient";
  Sequences none(s, 7, at::kFloat);
  none.qkv = none.qkv.narrow(1, 0, 0);
  EXPECT_EQ(cached_attention(none.qkv, none.arguments, none.keys, none.values, {0}).sizes(),
            at::IntArrayRef({1, 0, 16}));
}

// Prompts that begin at different positions, read together: each as if alone.
TEST(CachedAttention, AngleTablesOfEachSampleWithoutAPast) {
  const at::Tensor qkv = randn({2, 3, 4 * 8}, 1, at::kFloat), angles = randn({2, 3, 1, 4}, 2, at::kFloat);
  const auto run = [&](int64_t first, int64_t count) {
    const AttentionArguments arguments{.heads = 2,
                                       .kv_heads = 1,
                                       .cos = angles.narrow(0, first, count).cos(),
                                       .sin = angles.narrow(0, first, count).sin()};
    const at::Tensor keys = at::zeros({count, 1, 5, 8}), values = at::zeros({count, 1, 5, 8});
    return cached_attention(qkv.narrow(0, first, count), arguments, keys, values,
                            std::vector<int64_t>(static_cast<size_t>(count), 0));
  };
  const at::Tensor both = run(0, 2);
  testing::expect_relative(both[0], run(0, 1)[0], 1e-6, "the first");
  testing::expect_relative(both[1], run(1, 1)[0], 1e-6, "the second");
  const at::Tensor cache = at::zeros({1, 1, 5, 8});
  const AttentionArguments arguments{.heads = 2, .kv_heads = 1};
  EXPECT_THROW(cached_attention(qkv.narrow(0, 0, 1).narrow(1, 0, 1), arguments, cache, cache.clone(),
                                {std::numeric_limits<int64_t>::max()}),
               UsageError);
}

}  // namespace cached_attention_test
}  // namespace siamese::ops
