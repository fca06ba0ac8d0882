#include "siamese/kernels/attention.h"

#include <limits>

#include "tests/kernels/kernel_testing.h"

#include "siamese/kernels/reference/attention.h"

namespace siamese::kernels {
namespace attention_test {

using Attention = AtEverySimdLevel;
INSTANTIATE_TEST_SUITE_P(Simd, Attention, ::testing::ValuesIn(simd_targets()),
                         [](const auto& test) { return simd_name(test.param); });

struct Options {
  bool rope = false;
  bool qk_norm = false;
  bool v_norm = false;
};

int64_t gain_rows(const AttentionShape& s) { return s.batch * s.heads * attention_sizes(s, true).blocks; }

// One problem and its float result.
struct AttentionCase {
  AttentionCase(const AttentionShape& s, const Options& options)
      : shape(s),
        qkv(random_floats(s.batch * s.tokens * (s.heads + 2 * s.kv_heads) * s.head_dim, "qkv", 0.2)),
        d_out(random_floats(s.batch * s.tokens * s.heads * s.head_dim, "d_out")),
        angles(random_floats(s.tokens * (s.head_dim / 2), "angles", 0, 3)),
        gains(random_floats(3 * s.head_dim, "gains", 1, 0.5)),
        out(d_out.size(), kUntouched),
        lse(static_cast<size_t>(s.batch * s.heads * s.tokens), kUntouched),
        d_qkv(qkv.size(), kUntouched),
        d_gains(random_floats(gain_rows(s) * 3 * s.head_dim, "d_gains")),
        d_gains_before(d_gains) {
    for (const float angle : angles) {
      cos.push_back(std::cos(angle));
      sin.push_back(std::sin(angle));
    }
    inputs.qkv = qkv.data();
    if (options.rope) inputs.cos = cos.data(), inputs.sin = sin.data();
    if (options.qk_norm) inputs.q_gain = gains.data(), inputs.k_gain = gains.data() + s.head_dim;
    if (options.v_norm) inputs.v_gain = gains.data() + 2 * s.head_dim;
  }
  AttentionCase(const AttentionCase&) = delete;

  static std::vector<float> garbage(int64_t size) {
    return std::vector<float>(static_cast<size_t>(size), std::numeric_limits<float>::quiet_NaN());
  }
  void forward(int64_t begin, int64_t end) {
    // Whatever lies in the scratch must not matter.
    std::vector<float> scratch(static_cast<size_t>(attention_forward_scratch(shape)),
                               std::numeric_limits<float>::quiet_NaN());
    attention_forward(shape, inputs, out.data(), lse.data(), scratch.data(), begin, end);
  }
  void backward(int64_t begin, int64_t end) {
    std::vector<float> scratch(static_cast<size_t>(attention_backward_scratch(shape)),
                               std::numeric_limits<float>::quiet_NaN());
    attention_backward(shape, inputs, {out.data(), lse.data(), d_out.data(), d_qkv.data(), d_gains.data()},
                       scratch.data(), begin, end);
  }

  // The same in pieces, each step's in the wrong order; few enough blocks are kept that their sums have to wait.
  void forward_in_pieces() {
    const AttentionSizes sizes = attention_sizes(shape, false);
    std::vector<float> of_task = garbage(sizes.task_floats), of_block = garbage(sizes.block_floats);
    for (int64_t task = 0; task < shape.tasks(); ++task) {
      const auto run = [&](AttentionStep step, int64_t head, int64_t block) {
        attention_forward_piece(shape, inputs, out.data(), lse.data(),
                                {step, task, head, block, 0, of_task.data(), of_block.data()});
      };
      for (int64_t block = sizes.blocks; block-- > 0;) run(AttentionStep::keys, 0, block);
      for (int64_t i = shape.heads / shape.kv_heads * sizes.blocks; i-- > 0;) {
        run(AttentionStep::block, i / sizes.blocks, i % sizes.blocks);
      }
    }
  }
  void backward_in_pieces(int64_t kept) {
    const AttentionSizes sizes = attention_sizes(shape, true);
    const AttentionGradients gradients{out.data(), lse.data(), d_out.data(), d_qkv.data(), d_gains.data()};
    std::vector<float> of_task = garbage(sizes.task_floats), of_blocks = garbage(kept * sizes.block_floats);
    for (int64_t task = 0; task < shape.tasks(); ++task) {
      const auto run = [&](AttentionStep step, int64_t index, int64_t place, int64_t part) {
        attention_backward_piece(shape, inputs, gradients,
                                 {step, task, index / sizes.blocks, index % sizes.blocks, part, of_task.data(),
                                  of_blocks.data() + place * sizes.block_floats});
      };
      for (int64_t block = sizes.blocks; block-- > 0;) run(AttentionStep::keys, block, 0, 0);
      const int64_t all = shape.heads / shape.kv_heads * sizes.blocks;
      for (int64_t begin = 0; begin < all; begin += kept) {
        const int64_t count = std::min(kept, all - begin);
        for (int64_t i = count; i-- > 0;) run(AttentionStep::block, begin + i, i, 0);
        for (int64_t part = sizes.key_parts; part-- > 0;) {
          for (int64_t i = 0; i < count; ++i) run(AttentionStep::sums, begin + i, i, part);
        }
      }
      for (int64_t block = sizes.blocks; block-- > 0;) run(AttentionStep::key_rows, block, 0, 0);
    }
  }

  AttentionShape shape;
  std::vector<float> qkv, d_out, angles, gains, cos, sin;
  AttentionInputs inputs;
  std::vector<float> out, lse, d_qkv, d_gains, d_gains_before;
};

void expect_equals_reference(AttentionCase& c, const std::string& what) {
  const AttentionShape& s = c.shape;
  const std::vector<double> qkv = widen(c.qkv), d_out = widen(c.d_out), cos = widen(c.cos), sin = widen(c.sin),
                            gains = widen(c.gains);
  reference::AttentionInputs inputs;
  inputs.qkv = qkv.data();
  if (c.inputs.cos != nullptr) inputs.cos = cos.data(), inputs.sin = sin.data();
  if (c.inputs.q_gain != nullptr) inputs.gains[0] = gains.data(), inputs.gains[1] = gains.data() + s.head_dim;
  if (c.inputs.v_gain != nullptr) inputs.gains[2] = gains.data() + 2 * s.head_dim;
  std::vector<double> out(c.out.size()), lse(c.lse.size()), d_qkv(c.d_qkv.size()), d_gains(3 * s.head_dim);
  reference::attention_forward(s, inputs, out.data(), lse.data());
  reference::attention_backward(s, inputs, out.data(), lse.data(), d_out.data(), d_qkv.data(), d_gains.data());
  c.forward(0, s.tasks());
  c.backward(0, s.tasks());
  std::vector<float> added(d_gains.size());
  for (size_t i = 0; i < c.d_gains.size(); ++i) added[i % added.size()] += c.d_gains[i] - c.d_gains_before[i];
  // A score is a sum of D products and off by a few roundings of its size (up to 10 here, which is absolute in the
  // exponent); a gradient has two more sums and the cancellation in ds.
  expect_close(c.out, out, 3e-6, "out " + what);
  expect_close(c.lse, lse, 2e-6, "lse " + what);
  // Of one key p is 1 and its gradient 0, and a norm of one number keeps its sign: differences of equal numbers of
  // about 1. The gains' gradients were added to such numbers.
  expect_close(c.d_qkv, d_qkv, 1e-5, "d_qkv " + what, s.tokens == 1 || s.head_dim == 1 ? 1 : 0);
  expect_close(added, d_gains, 1e-5, "d_gains " + what, 1);
}

std::string text(const AttentionShape& s) {
  return "T" + std::to_string(s.tokens) + " H" + std::to_string(s.heads) + "/" + std::to_string(s.kv_heads) + " D" +
         std::to_string(s.head_dim) + (s.causal ? " causal" : "") +
         (s.window > 0 ? " W" + std::to_string(s.window) : "");
}

TEST_P(Attention, EqualsTheReference) {
  for (const int64_t dim : {1, 2, 8, 20, 32, 33, 64, 80}) {
    for (const int64_t tokens : {1, 2, 7, 33, 65, 130}) {
      for (const bool causal : {true, false}) {
        // Long rows with fewer heads: the reference is slow.
        const int64_t heads = tokens == 65 ? 1 : tokens % 2 == 0 ? 2 : 4;
        const AttentionShape shape{tokens > 50 ? 1 : 2, tokens, heads, heads == 4 ? 2 : 1, dim, causal, 1e-5F};
        const bool rope = dim % 2 == 0;
        for (const Options& options : {Options{}, Options{rope, true, true}, Options{rope, causal, !causal}}) {
          if (tokens > 100 && !options.v_norm) continue;
          AttentionCase c(shape, options);
          expect_equals_reference(c, text(shape));
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

// The longer the rows, the fewer are worked on at once.
TEST_P(Attention, LongRowsEqualTheReference) {
  for (const int64_t tokens : {700, 1200}) {
    const AttentionShape shape{1, tokens, 1, 1, 6, tokens == 1200, 1e-5F};
    AttentionCase c(shape, {true, true, true});
    expect_equals_reference(c, text(shape));
  }
}

// Windows shorter than a vector, a tile and a block, across their borders, and longer than all tokens.
TEST_P(Attention, WindowsEqualTheReference) {
  for (const int64_t tokens : {1, 7, 65, 250}) {
    for (const int64_t window : {1, 2, 5, 16, 47, 48, 49, 97, 400}) {
      for (const int64_t dim : {8, 33}) {
        const AttentionShape shape{tokens > 50 ? 1 : 2, tokens, 2, 1, dim, true, 1e-5F, window};
        // Of a window of one key the gradients of q and k are 0: nothing that a gain's could be told from rounding by.
        AttentionCase c(shape, {dim == 8, window > 1, window % 2 == 1});
        expect_equals_reference(c, text(shape));
        if (HasFatalFailure()) return;
      }
    }
  }
  const AttentionShape shape{1, 1200, 1, 1, 6, true, 1e-5F, 333};
  AttentionCase c(shape, {true, true, true});
  expect_equals_reference(c, text(shape));
}

// All tokens in the window: bit for bit what there is without one.
TEST_P(Attention, AWindowOfAllTokensChangesNothing) {
  for (const int64_t tokens : {1, 50, 250}) {
    AttentionShape shape{2, tokens, 4, 2, 20, true, 1e-5F};
    AttentionCase without(shape, {true, true, true});
    without.forward(0, shape.tasks());
    without.backward(0, shape.tasks());
    for (const int64_t window : {tokens, tokens + 1, int64_t{1} << 40}) {
      shape.window = window;
      AttentionCase with(shape, {true, true, true});
      with.forward(0, shape.tasks());
      with.backward(0, shape.tasks());
      EXPECT_TRUE(same_bits(with.out, without.out)) << text(shape);
      EXPECT_TRUE(same_bits(with.lse, without.lse)) << text(shape);
      EXPECT_TRUE(same_bits(with.d_qkv, without.d_qkv)) << text(shape);
      EXPECT_TRUE(same_bits(with.d_gains, without.d_gains)) << text(shape);
    }
  }
}

TEST_P(Attention, TaskByTaskGivesTheSameBits) {
  for (const int64_t dim : {20, 64}) {
    const AttentionShape shape{2, 50, 4, 2, dim, true, 1e-5F};
    AttentionCase whole(shape, {true, true, true}), split(shape, {true, true, true});
    whole.forward(0, 4);
    whole.backward(0, 4);
    for (int64_t task = 3; task >= 0; --task) split.forward(task, task + 1);
    for (int64_t task = 3; task >= 0; --task) split.backward(task, task + 1);
    EXPECT_TRUE(same_bits(whole.out, split.out));
    EXPECT_TRUE(same_bits(whole.lse, split.lse));
    EXPECT_TRUE(same_bits(whole.d_qkv, split.d_qkv));
    EXPECT_TRUE(same_bits(whole.d_gains, split.d_gains));
  }
}

TEST_P(Attention, PieceByPieceGivesTheSameBits) {
  for (const AttentionShape& shape :
       {AttentionShape{1, 250, 2, 1, 20, true, 1e-5F}, AttentionShape{2, 130, 2, 2, 64, false, 1e-5F},
        AttentionShape{1, 97, 4, 2, 33, true, 1e-5F}, AttentionShape{1, 400, 2, 1, 20, true, 1e-5F, 70},
        AttentionShape{1, 300, 4, 2, 33, true, 1e-5F, 1}}) {
    const bool rope = shape.head_dim % 2 == 0;
    AttentionCase whole(shape, {rope, true, true}), pieces(shape, {rope, true, true});
    ASSERT_GT(attention_sizes(shape, true).blocks, 1);
    whole.forward(0, shape.tasks());
    whole.backward(0, shape.tasks());
    pieces.forward_in_pieces();
    for (const int64_t kept : {1, 2, 100}) {
      pieces.d_gains = pieces.d_gains_before;
      pieces.backward_in_pieces(kept);
      EXPECT_TRUE(same_bits(whole.out, pieces.out)) << text(shape);
      EXPECT_TRUE(same_bits(whole.lse, pieces.lse)) << text(shape);
      EXPECT_TRUE(same_bits(whole.d_qkv, pieces.d_qkv)) << text(shape) << " kept " << kept;
      EXPECT_TRUE(same_bits(whole.d_gains, pieces.d_gains)) << text(shape) << " kept " << kept;
    }
  }
}

// Where a head's rows are whole cache lines, out and d_qkv go past the caches (non-temporal stores).
TEST_P(Attention, StoresPastTheCacheGiveTheSameBits) {
  for (const int64_t dim : {16, 32, 48, 64}) {
    const AttentionShape shape{1, 21, 2, 1, dim, true, 1e-5F};
    std::vector<float> aligned_out, aligned_d_qkv;
    for (const int64_t offset : {0, 1, 4, 8}) {
      AttentionCase c(shape, {true, true, false});
      LineArrays arrays(offset);
      float* const out = arrays.add(c.out);
      float* const d_qkv = arrays.add(c.d_qkv);
      ASSERT_EQ(can_store_past_cache(out, dim) && can_store_past_cache(d_qkv, dim), offset == 0);
      const auto scratch = std::max(attention_forward_scratch(shape), attention_backward_scratch(shape));
      std::vector<float> own(static_cast<size_t>(scratch));
      attention_forward(shape, c.inputs, out, c.lse.data(), own.data(), 0, 1);
      attention_backward(shape, c.inputs, {out, c.lse.data(), c.d_out.data(), d_qkv, nullptr}, own.data(), 0, 1);
      c.out.assign(out, out + c.out.size());
      c.d_qkv.assign(d_qkv, d_qkv + c.d_qkv.size());
      if (offset == 0) aligned_out = c.out, aligned_d_qkv = c.d_qkv;
      EXPECT_TRUE(same_bits(c.out, aligned_out)) << dim << " " << offset;
      EXPECT_TRUE(same_bits(c.d_qkv, aligned_d_qkv)) << dim << " " << offset;
    }
    AttentionCase reference_case(shape, {true, true, false});
    expect_equals_reference(reference_case, text(shape));
    EXPECT_TRUE(same_bits(reference_case.out, aligned_out)) << dim;
    EXPECT_TRUE(same_bits(reference_case.d_qkv, aligned_d_qkv)) << dim;
  }
}

TEST_P(Attention, LeavesOtherTasksAlone) {
  const AttentionShape shape{2, 9, 4, 2, 33, true, 1e-5F};
  AttentionCase c(shape, {false, true, true});
  c.forward(0, 4);
  std::fill(c.out.begin(), c.out.end(), kUntouched);
  c.forward(1, 2);  // sample 0, key/value head 1: query heads 2 and 3
  for (size_t i = 0; i < c.out.size(); ++i) {
    const size_t head = i / 33 % 4;
    EXPECT_EQ(c.out[i] != kUntouched, i < c.out.size() / 2 && head >= 2) << i;
  }
  c.backward(1, 2);
  for (size_t i = 0; i < c.d_qkv.size(); ++i) {
    const size_t head = i / 33 % 8;  // q 0..3, k 4..5, v 6..7
    const bool inside = i < c.d_qkv.size() / 2 && (head == 2 || head == 3 || head == 5 || head == 7);
    EXPECT_EQ(c.d_qkv[i] != kUntouched, inside) << i;
  }
  for (size_t i = 0; i < c.d_gains.size(); ++i) {
    const size_t head = i / (3 * 33), part = i / 33 % 3;  // k and v stand with the first of their query heads
    EXPECT_EQ(c.d_gains[i] != c.d_gains_before[i], head == 2 || (head == 3 && part == 0)) << i;
  }
}

// exp of a score of 100 overflows, of the difference between two of them underflows; neither may show.
TEST_P(Attention, LargeScoresStayExact) {
  for (const double size : {8.0, 40.0}) {
    const AttentionShape shape{1, 37, 1, 1, 32, true, 1e-5F};
    AttentionCase c(shape, {});
    for (float& value : c.qkv) value *= static_cast<float>(size);
    const std::vector<double> qkv = widen(c.qkv);
    std::vector<double> out(c.out.size()), lse(c.lse.size());
    reference::AttentionInputs inputs;
    inputs.qkv = qkv.data();
    reference::attention_forward(shape, inputs, out.data(), lse.data());
    c.forward(0, 1);
    c.backward(0, 1);
    // The size of a score is the absolute error of its exponent: scores reach size^2 times 4.
    expect_close(c.out, out, 8 * size * size * kUlp, "out");
    expect_close(c.lse, lse, 2e-6, "lse");
    for (const float value : c.d_qkv) EXPECT_TRUE(std::isfinite(value));
  }
}

TEST_P(Attention, NanAndInfinityMakeNan) {
  const float kNan = std::numeric_limits<float>::quiet_NaN();
  const float kInfinity = std::numeric_limits<float>::infinity();
  for (const float bad : {kNan, -kNan, kInfinity, -kInfinity}) {
    for (const int64_t part : {0, 1, 2}) {
      const AttentionShape shape{2, 70, 1, 1, 20, true, 1e-5F};
      AttentionCase clean(shape, {true, true, true}), broken(shape, {true, true, true});
      broken.qkv[60 * 60 + part * 20 + 3] = bad;  // token 60 of sample 0
      for (AttentionCase* c : {&clean, &broken}) {
        c->forward(0, 2);
        c->backward(0, 2);
      }
      EXPECT_TRUE(std::isnan(broken.out[60 * 20 + 3])) << part << " " << bad;
      EXPECT_TRUE(std::isnan(broken.d_qkv[60 * 60 + part * 20 + 3])) << part << " " << bad;
      const int64_t sample = 70 * 20;
      EXPECT_TRUE(same_bits(&broken.out[sample], &clean.out[sample], sample));
      EXPECT_TRUE(same_bits(&broken.d_qkv[3 * sample], &clean.d_qkv[3 * sample], 3 * sample));
    }
  }
}

TEST_P(Attention, NullGainGradientsAreNotWanted) {
  const AttentionShape shape{1, 5, 2, 1, 8, true, 1e-5F};
  AttentionCase with(shape, {true, true, true}), without(shape, {true, true, true});
  with.forward(0, 1);
  with.backward(0, 1);
  without.forward(0, 1);
  std::vector<float> scratch(static_cast<size_t>(attention_backward_scratch(shape)));
  attention_backward(shape, without.inputs,
                     {without.out.data(), without.lse.data(), without.d_out.data(), without.d_qkv.data(), nullptr},
                     scratch.data(), 0, 1);
  EXPECT_TRUE(same_bits(with.d_qkv, without.d_qkv));
}

}  // namespace attention_test
}  // namespace siamese::kernels
