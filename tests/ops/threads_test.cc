// Every op, fused and plain, at 1, 2, 3, 4 and 7 threads: the same bits, forward and every gradient. Few and odd rows
// first, where libraries cut a product inside a vector; then more elements than ATen's 32768, below which it does not
// share a loop.
#include "tests/support/threads.h"

#include <functional>

#include "siamese/ops/activation.h"
#include "siamese/ops/attention.h"
#include "siamese/ops/cached_attention.h"
#include "siamese/ops/cross_entropy.h"
#include "siamese/ops/depth_attend.h"
#include "siamese/ops/embedding.h"
#include "siamese/ops/expert_feed_forward.h"
#include "siamese/ops/feed_forward.h"
#include "siamese/ops/head_loss.h"
#include "siamese/ops/junction.h"
#include "siamese/ops/linear.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/modulate.h"
#include "siamese/ops/norm.h"
#include "siamese/ops/pointwise_norm.h"
#include "siamese/ops/product.h"
#include "siamese/ops/reduce.h"
#include "siamese/ops/rope.h"
#include "siamese/ops/route.h"
#include "siamese/ops/row_linear.h"
#include "siamese/ops/sinkhorn.h"
#include "siamese/ops/stream_attend.h"
#include "siamese/ops/stream_mix.h"

namespace siamese::ops {
namespace threads_test {

using testing::expect_function_same_at_any_thread_count;
using testing::expect_same_at_any_thread_count;
using testing::randn;
using List = std::vector<at::Tensor>;

at::Tensor floats(at::IntArrayRef shape, uint64_t seed) { return randn(shape, seed, at::kFloat); }

std::string text(std::initializer_list<int64_t> sizes) {
  std::string result;
  for (const int64_t size : sizes) result += (result.empty() ? "" : " x ") + std::to_string(size);
  return result;
}

template <class Check>
void fused_and_plain(const std::string& what, const Check& check) {
  for (const Mode mode : {Mode::automatic, Mode::plain}) {
    const ModeGuard guard(mode);
    check(what + (mode == Mode::plain ? ", plain, " : ", fused, "));
  }
}

// inputs -> y of one op, as its caller sees it.
void check(const std::string& what, const List& inputs, const std::function<at::Tensor(const List&)>& op) {
  fused_and_plain(what, [&](const std::string& name) { expect_function_same_at_any_thread_count(name, inputs, op); });
}

std::vector<int64_t> few_rows() {
  std::vector<int64_t> rows;
  for (int64_t i = 1; i <= 17; ++i) rows.push_back(i);
  for (const int64_t more : {31, 33, 100}) rows.push_back(more);
  return rows;
}

TEST(Threads, Linear) {
  for (const int64_t rows : few_rows()) {
    for (const auto& [in, out] : std::vector<std::pair<int64_t, int64_t>>{{8, 33}, {33, 65}, {64, 64}, {96, 38}}) {
      check("linear " + text({rows, in, out}), {floats({rows, in}, 1), floats({out, in}, 2), floats({out}, 3)},
            [](const List& x) { return ops::linear(x[0], x[1], x[2]); });
    }
  }
  // Worth cutting, by rows and by columns; as large as what goes to oneDNN; one output; long sums.
  for (const auto& [rows, in, out] : std::vector<std::array<int64_t, 3>>{
           {700, 65, 37}, {37, 65, 700}, {1, 512, 1200}, {257, 256, 260}, {33000, 3, 1}, {6, 9000, 7}}) {
    check("linear " + text({rows, in, out}), {floats({rows, in}, 1), floats({out, in}, 2), floats({out}, 3)},
          [](const List& x) { return ops::linear(x[0], x[1], x[2]); });
  }
}

TEST(Threads, FeedForward) {
  for (const int64_t rows : {1, 5, 6, 7, 9, 11, 17, 300}) {
    for (const Activation kind : {Activation::swiglu, Activation::gelu, Activation::gelu_tanh}) {
      const int64_t hidden = 150;
      const int64_t in = kind == Activation::swiglu ? 2 * hidden : hidden;
      check("feed-forward " + text({rows}),
            {floats({rows, 33}, 1), floats({in, 33}, 2), floats({in}, 3), floats({33, hidden}, 4), floats({33}, 5)},
            [&](const List& x) {
              return feed_forward(kind, x[0], {x[1], x[2], x[3], x[4]});
            });
    }
  }
}

TEST(Threads, Experts) {
  for (const int64_t rows : {3, 11, 40}) {
    const at::Tensor chosen = at::stack({at::arange(rows) % 3, at::arange(rows) % 2 + 1}, 1).to(at::kLong);
    check("experts " + text({rows}),
          {floats({rows, 33}, 1), floats({rows, 2}, 2), floats({3, 38, 33}, 3), floats({3, 33, 19}, 4)},
          [&](const List& x) { return expert_feed_forward(Activation::swiglu, x[0], chosen, x[1], x[2], x[3]); });
  }
}

TEST(Threads, HeadAndLoss) {
  for (const int64_t rows : {1, 5, 6, 7, 9, 10, 11, 40}) {
    for (const int64_t vocab : {33, 1001}) {
      const at::Tensor targets = at::arange(rows, at::kLong) * 7919 % vocab;
      check("head " + text({rows, vocab}), {floats({rows, 37}, 1), floats({vocab, 37}, 2)}, [&](const List& x) {
        return head_loss(x[0], x[1], targets, {}, {0.3, 0.01}).objective;
      });
      check("cross-entropy " + text({rows, vocab}), {floats({rows, vocab}, 1)},
            [&](const List& x) { return cross_entropy(x[0], targets, {}).nll; });
    }
  }
}

TEST(Threads, DepthAttend) {
  for (const int64_t rows : {1, 5, 7, 31, 700}) {
    List inputs = {floats({rows, 6, 17}, 1)};
    for (uint64_t seed = 2; seed < 8; ++seed) inputs.push_back(floats({rows, 3, 17}, seed));
    check("depth_attend " + text({rows}), inputs, [](const List& x) {
      return depth_attend(x[0], {x[1], x[2], x[3]}, {x[4], x[5], x[6]});
    });
  }
}

TEST(Threads, RowProducts) {
  for (const int64_t rows : {1, 5, 7, 9, 11, 100, 3000}) {
    check("row_linear " + text({rows}), {floats({rows, 38}, 1), floats({6, 38}, 2)},
          [](const List& x) { return row_linear(x[0], x[1]); });
    check("row_project " + text({rows}), {floats({rows, 38}, 1), floats({6, 38}, 2)}, [](const List& x) {
      const RowProjection made = row_project(x[0], x[1]);
      return at::cat({made.y * made.squares, made.x}, -1);
    });
    check("for_each_row " + text({rows}), {floats({4, 4}, 1)},
          [&](const List& x) { return for_each_row(x[0], {rows}); });
  }
}

TEST(Threads, Attention) {
  for (const auto& [batch, tokens] : std::vector<std::pair<int64_t, int64_t>>{{1, 5}, {1, 31}, {2, 9}, {5, 31}}) {
    for (const int64_t head_dim : {8, 17, 32}) {
      for (const int64_t heads : {1, 4}) {
        const int64_t kv_heads = heads == 1 ? 1 : 2;
        check("attention " + text({batch, tokens, heads, head_dim}),
              {floats({batch, tokens, (heads + 2 * kv_heads) * head_dim}, 1), floats({head_dim}, 2)},
              [&](const List& x) {
                return attention(x[0], {.heads = heads, .kv_heads = kv_heads, .q_gain = x[1], .eps = 1e-5});
              });
      }
    }
  }
}

// Fewer tasks than threads, or not as many for each: threads share what is left in pieces.
TEST(Threads, AttentionOfFewTasks) {
  struct Shape {
    int64_t batch, tokens, heads, kv_heads, head_dim;
    bool causal;
  };
  for (const Shape& s : {Shape{1, 300, 1, 1, 64, true}, Shape{1, 300, 4, 1, 32, true}, Shape{3, 200, 2, 1, 64, false},
                         Shape{1, 257, 6, 3, 48, true}}) {
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
      const at::Tensor qkv = floats({s.batch, s.tokens, (s.heads + 2 * s.kv_heads) * s.head_dim}, 1).to(type);
      const auto run = [&](const List& x) {
        return attention(x[0], {.heads = s.heads,
                                .kv_heads = s.kv_heads,
                                .causal = s.causal,
                                .q_gain = x[1],
                                .k_gain = x[2],
                                .eps = 1e-5});
      };
      const ModeGuard fused(Mode::fused);
      expect_function_same_at_any_thread_count(
          "attention in pieces " + text({s.batch, s.tokens, s.heads, s.kv_heads, s.head_dim}),
          {qkv, floats({s.head_dim}, 2), floats({s.head_dim}, 3)}, run);
    }
  }
}

TEST(Threads, CachedAttention) {
  for (const int64_t heads : {1, 2, 4}) {
    for (const auto& [tokens, past] :
         std::vector<std::pair<int64_t, int64_t>>{{1, 15}, {1, 32}, {1, 1999}, {5, 0}, {31, 0}, {3, 37}}) {
      for (const int64_t head_dim : {8, 16, 64}) {
        const int64_t kv_heads = (heads + 1) / 2;
        const at::Tensor qkv = floats({1, tokens, (heads + 2 * kv_heads) * head_dim}, 1);
        const at::Tensor keys = floats({1, kv_heads, past + tokens, head_dim}, 2);
        const at::Tensor values = floats({1, kv_heads, past + tokens, head_dim}, 3);
        fused_and_plain("cached attention " + text({heads, tokens, past, head_dim}), [&](const std::string& what) {
          expect_same_at_any_thread_count(what, [&] {
            const List held = {keys.clone(), values.clone()};
            const at::Tensor out =
                cached_attention(qkv, {.heads = heads, .kv_heads = kv_heads}, held[0], held[1], {past});
            return List{out, held[0], held[1]};
          });
        });
      }
    }
  }
}

// Up to as many rows as have a kernel of their own, and one more.
TEST(Threads, ProductsOfFewRows) {
  for (const int64_t rows : {1, 2, 3, 7, 8, 9}) {
    for (const auto& [in, out] : std::vector<std::pair<int64_t, int64_t>>{{33, 1000}, {257, 2001}, {1024, 256}}) {
      const at::Tensor x = floats({rows, in}, 1), w = floats({out, in}, 2);
      expect_same_at_any_thread_count("few rows " + text({rows, in, out}), [&] {
        return List{times_transposed(x, w), times_transposed(x.to(at::kBFloat16), w.to(at::kBFloat16))};
      });
    }
  }
}

// Past 32768 elements.
TEST(Threads, Rows) {
  for (const auto& [rows, cols] :
       std::vector<std::pair<int64_t, int64_t>>{{7, 33}, {900, 37}, {1000, 38}, {33000, 1}}) {
    const at::Tensor x = floats({rows, cols}, 1), gain = floats({cols}, 2), bias = floats({cols}, 3);
    const std::string shape = text({rows, cols});
    check("rms_norm " + shape, {x, gain}, [](const List& v) { return rms_norm(v[0], v[1], 1e-5); });
    check("layer_norm " + shape, {x, gain, bias}, [](const List& v) { return layer_norm(v[0], v[1], v[2], 1e-5); });
    for (const PointwiseFunction function : {PointwiseFunction::tanh, PointwiseFunction::erf}) {
      check("pointwise_norm " + shape, {x, floats({1}, 4), floats({1}, 5), gain, bias},
            [&](const List& v) { return pointwise_norm(function, v[0], v[1], v[2], v[3], v[4]); });
    }
    check("fixed_sum " + shape, {x}, [](const List& v) { return fixed_sum(v[0]); });
    const at::Tensor wide = floats({rows, 2 * cols}, 1);
    for (const Activation kind : {Activation::swiglu, Activation::gelu, Activation::gelu_tanh}) {
      check("activation " + shape, {wide}, [&](const List& v) { return activation(kind, v[0]); });
    }
    check("silu, sigmoid " + shape, {wide}, [](const List& v) { return ops::silu(v[0]) + ops::sigmoid(v[0]); });
    const at::Tensor samples = floats({3, rows, cols}, 4), scale = floats({3, cols}, 5), shift = floats({3, cols}, 6);
    check("modulate " + shape, {samples, shift, scale}, [](const List& v) { return modulate(v[0], v[1], v[2]); });
    check("gate " + shape, {samples, scale}, [](const List& v) { return gate(v[0], v[1]); });
    check("add_to_each " + shape, {floats({rows, 1, cols}, 4), floats({1, cols}, 5)},
          [](const List& v) { return add_to_each(v[0], v[1]); });
    const at::Tensor indices = at::arange(3 * rows, at::kLong) * 7 % rows;
    check("embedding " + shape, {x}, [&](const List& v) { return ops::embedding(v[0], indices); });
    check("route " + shape, {floats({rows, 5}, 7)}, [](const List& v) {
      const Routing made = route(v[0], 2, true);
      return at::cat({made.weights.reshape({-1}), made.balance.view({1}), made.z.view({1})});
    });
    check("sinkhorn " + shape, {floats({rows, 4, 4}, 8)}, [](const List& v) { return sinkhorn(v[0], 5); });
  }
  check("rope", {floats({3, 900, 2, 38}, 1)},
        [cos = floats({900, 1, 19}, 2), sin = floats({900, 1, 19}, 3)](const List& v) { return rope(v[0], cos, sin); });
}

TEST(Threads, Junctions) {
  for (const auto& [rows, cols] : std::vector<std::pair<int64_t, int64_t>>{{5, 33}, {900, 37}}) {
    List inputs;
    for (uint64_t seed = 1; seed <= 3; ++seed) inputs.push_back(floats({rows, cols}, seed));
    for (uint64_t seed = 4; seed <= 6; ++seed) inputs.push_back(floats({cols}, seed));
    for (const bool layer : {false, true}) {  // true: two kinds of norm, which have no kernel
      check("junction " + text({rows, cols}), inputs, [&](const List& v) {
        Junction j{.branch = v[0], .x = v[1], .y = v[2], .x_branch = 0.5, .y_branch = 1};
        j.x_scale = v[3];
        j.y_norm = {.present = true, .layer = false, .gain = v[4], .bias = {}, .eps = 1e-5};
        j.input_norm = {.present = true, .layer = layer, .gain = v[5], .bias = {}, .eps = 1e-5};
        const JunctionResult made = junction(j);
        return made.x + made.y * made.input;
      });
    }
    for (const int64_t streams : {2, 5}) {  // five have no kernel
      List mixed;
      for (int64_t i = 0; i < streams; ++i) mixed.push_back(floats({rows, cols}, 20 + static_cast<uint64_t>(i)));
      const auto n = static_cast<size_t>(streams);
      List attended = mixed;
      attended.push_back(floats({cols}, 33));
      check("stream_attend " + text({rows, cols, streams}), attended, [&](const List& v) {
        const NormStep norm{.present = true, .layer = true, .gain = {}, .bias = {}, .eps = 1e-5};
        return stream_attend({v.begin(), v.begin() + streams - 1}, v[n - 1], v[n], 1e-5, norm).input;
      });
      for (const bool each_row : {false, true}) {
        List all = mixed;
        all.push_back(each_row ? floats({rows, streams, streams}, 30) : floats({streams, streams}, 30));
        all.push_back(floats({rows, cols}, 31));
        all.push_back(each_row ? floats({rows, streams}, 32) : floats({streams}, 32));
        check("stream_mix " + text({rows, cols, streams}), all, [&](const List& v) {
          return at::stack(stream_mix({v.begin(), v.begin() + streams}, v[n], v[n + 1], v[n + 2]));
        });
        all.erase(all.end() - 3, all.end() - 1);
        check("stream_read " + text({rows, cols, streams}), all, [&](const List& v) {
          const NormStep norm{.present = true, .layer = true, .gain = {}, .bias = {}, .eps = 1e-5};
          return stream_read({v.begin(), v.begin() + streams}, v[n], norm).input;
        });
      }
    }
  }
}

}  // namespace threads_test
}  // namespace siamese::ops
