#include "siamese/kernels/cached_attention.h"

#include "tests/kernels/kernel_testing.h"

#include "siamese/kernels/reference/cached_attention.h"

namespace siamese::kernels {
namespace cached_attention_test {

SIAMESE_AT_EVERY_SIMD_LEVEL(CachedAttention);

struct Setting {
  int64_t batch, tokens, heads, kv_heads, dim, capacity;
  bool rotated;
  std::string gains;  // of "qkv"
  int64_t window = 0;
};

// Whole sequences, and the way through them with a cache.
class Sequences {
 public:
  explicit Sequences(const Setting& setting)
      : setting_(setting), row_((setting.heads + 2 * setting.kv_heads) * setting.dim) {
    qkv_ = random_floats(setting.batch * setting.tokens * row_, "qkv");
    for (int64_t i = 0; i < setting.tokens * (setting.dim / 2); ++i) {
      cos_.push_back(static_cast<float>(std::cos(0.37 * static_cast<double>(i))));
      sin_.push_back(static_cast<float>(std::sin(0.37 * static_cast<double>(i))));
    }
    for (const std::string name : {"q", "k", "v"}) gains_.push_back(random_floats(setting.dim, name, 1, 0.3));
    const int64_t held = setting.batch * setting.kv_heads * setting.capacity * setting.dim;
    keys_.assign(static_cast<size_t>(held) + 16, kUntouched);
    values_ = keys_;
    out_.assign(static_cast<size_t>(setting.batch * setting.tokens * setting.heads * setting.dim), kUntouched);
  }

  // The next tokens of the samples [first, last): `count` of each, from past[sample] on.
  void pass(int64_t first, int64_t last, const std::vector<int64_t>& past, int64_t count, bool want_out = true) {
    const Setting& s = setting_;
    const int64_t batch = last - first, half = s.dim / 2;
    std::vector<float> qkv, cos, sin;
    for (int64_t b = first; b < last; ++b) {
      const auto from = qkv_.begin() + (b * s.tokens + past[b]) * row_;
      qkv.insert(qkv.end(), from, from + count * row_);
      for (auto [table, to] : {std::pair{&cos_, &cos}, std::pair{&sin_, &sin}}) {
        to->insert(to->end(), table->begin() + past[b] * half, table->begin() + (past[b] + count) * half);
      }
    }
    const AttentionShape shape = shape_of(batch, count);
    AttentionInputs inputs{.qkv = qkv.data()};
    if (s.rotated) inputs.cos = cos.data();
    if (s.rotated) inputs.sin = sin.data();
    if (s.gains.find('q') != std::string::npos) inputs.q_gain = gains_[0].data();
    if (s.gains.find('k') != std::string::npos) inputs.k_gain = gains_[1].data();
    if (s.gains.find('v') != std::string::npos) inputs.v_gain = gains_[2].data();
    const int64_t held = s.kv_heads * s.capacity * s.dim;
    const KeyValueCache cache{keys_.data() + first * held, values_.data() + first * held, past.data() + first,
                              s.capacity, count * half};
    const int64_t size = cached_attention_scratch(shape, cache);
    std::vector<float> scratch(static_cast<size_t>(size) + 16, kUntouched);
    std::vector<float> out(static_cast<size_t>(batch * count * s.heads * s.dim), kUntouched);
    for (int64_t task = 0; task < shape.tasks(); ++task) {
      cached_attention(shape, inputs, cache, want_out ? out.data() : nullptr, scratch.data(), task, task + 1);
    }
    for (int64_t i = size; i < size + 16; ++i) ASSERT_EQ(scratch[i], kUntouched) << "past the scratch";
    for (const auto* held_rows : {&keys_, &values_}) {
      for (size_t i = held_rows->size() - 16; i < held_rows->size(); ++i) ASSERT_EQ((*held_rows)[i], kUntouched);
    }
    if (!want_out) return;
    for (int64_t b = 0; b < batch; ++b) {
      const auto from = out.begin() + b * count * s.heads * s.dim;
      std::copy(from, from + count * s.heads * s.dim,
                out_.begin() + ((first + b) * s.tokens + past[first + b]) * s.heads * s.dim);
    }
  }

  std::vector<double> expected() const {
    const std::vector<double> qkv = widen(qkv_), cos = widen(cos_), sin = widen(sin_);
    std::vector<std::vector<double>> gains;
    for (const auto& gain : gains_) gains.push_back(widen(gain));
    reference::AttentionInputs inputs{.qkv = qkv.data()};
    if (setting_.rotated) inputs.cos = cos.data();
    if (setting_.rotated) inputs.sin = sin.data();
    for (size_t i = 0; i < 3; ++i) {
      if (setting_.gains.find("qkv"[i]) != std::string::npos) inputs.gains[i] = gains[i].data();
    }
    std::vector<double> out(out_.size());
    const int64_t seen = setting_.window > 0 ? std::min(setting_.window, setting_.capacity) : setting_.capacity;
    reference::windowed_attention(shape_of(setting_.batch, setting_.tokens), inputs, seen, out.data());
    return out;
  }

  const std::vector<float>& out() const { return out_; }

 private:
  AttentionShape shape_of(int64_t batch, int64_t tokens) const {
    return {.batch = batch,
            .tokens = tokens,
            .heads = setting_.heads,
            .kv_heads = setting_.kv_heads,
            .head_dim = setting_.dim,
            .eps = 1e-5F,
            .window = setting_.window};
  }

  Setting setting_;
  int64_t row_;
  std::vector<float> qkv_, cos_, sin_, keys_, values_, out_;
  std::vector<std::vector<float>> gains_;
};

const std::vector<Setting> kSettings = {
    {1, 9, 1, 1, 1, 9, false, ""},    {2, 40, 4, 2, 34, 40, true, "qkv"}, {1, 70, 6, 2, 64, 70, true, "qk"},
    {2, 21, 2, 2, 100, 21, true, ""}, {1, 33, 12, 1, 8, 33, false, "v"},  {3, 17, 3, 3, 16, 17, true, "k"},
};

std::string text_of(const Setting& s) {
  return std::to_string(s.heads) + "/" + std::to_string(s.kv_heads) + " heads of " + std::to_string(s.dim);
}

TEST_P(CachedAttention, ChunksAndTokensEqualAllAtOnce) {
  for (const Setting& s : kSettings) {
    Sequences sequences(s);
    std::vector<int64_t> past(static_cast<size_t>(s.batch), 0);
    for (const int64_t count : {int64_t{4}, int64_t{1}, int64_t{3}}) {
      sequences.pass(0, s.batch, past, count);
      for (int64_t& p : past) p += count;
    }
    while (past[0] < s.tokens) {
      sequences.pass(0, s.batch, past, 1);
      for (int64_t& p : past) ++p;
    }
    expect_close(sequences.out(), sequences.expected(), 1e-5, text_of(s));
  }
}

// Each sample begins with as many tokens as it likes; then all go on together.
TEST_P(CachedAttention, SamplesStandAtTheirOwnTokens) {
  const Setting s{3, 16, 4, 2, 16, 16, true, "qk"};
  Sequences sequences(s);
  std::vector<int64_t> past(3, 0);
  const std::vector<int64_t> prompts = {7, 2, 5};
  for (int64_t b = 0; b < 3; ++b) sequences.pass(b, b + 1, past, prompts[b]);
  past = prompts;
  for (int step = 0; step < 9; ++step) {
    sequences.pass(0, 3, past, 1);
    for (int64_t& p : past) ++p;
  }
  sequences.pass(1, 2, past, 5);
  sequences.pass(2, 3, past, 2);
  expect_close(sequences.out(), sequences.expected(), 1e-5, "at their own tokens");
}

// Past the capacity the oldest token is forgotten.
TEST_P(CachedAttention, TheCacheIsARing) {
  for (const int64_t capacity : {1, 5, 18}) {
    const Setting s{2, 47, 2, 1, 18, capacity, true, "qkv"};
    Sequences sequences(s);
    std::vector<int64_t> past(2, 0);
    sequences.pass(0, 2, past, capacity);
    for (past = {capacity, capacity}; past[0] < s.tokens; ++past[0], ++past[1]) sequences.pass(0, 2, past, 1);
    expect_close(sequences.out(), sequences.expected(), 1e-5, "a ring of " + std::to_string(capacity));
  }
}

// A window that is shorter than the cache, in a ring and before it is one.
TEST_P(CachedAttention, AWindowForgetsSooner) {
  for (const int64_t window : {1, 3, 17, 18, 40}) {
    for (const int64_t capacity : {18, 47}) {
      const Setting s{2, 47, 4, 2, 18, capacity, true, "qk", window};
      Sequences sequences(s);
      std::vector<int64_t> past(2, 0);
      sequences.pass(0, 2, past, 11);
      sequences.pass(0, 2, {11, 11}, 7);
      for (past = {18, 18}; past[0] < s.tokens; ++past[0], ++past[1]) sequences.pass(0, 2, past, 1);
      expect_close(sequences.out(), sequences.expected(), 1e-5,
                   "window " + std::to_string(window) + " of " + std::to_string(capacity));
    }
  }
}

TEST_P(CachedAttention, MayOnlyFillTheCache) {
  const Setting s{1, 12, 2, 1, 16, 12, true, "k"};
  Sequences filled(s), asked(s);
  filled.pass(0, 1, {0}, 8, /*want_out=*/false);
  asked.pass(0, 1, {0}, 8);
  for (Sequences* sequences : {&filled, &asked}) sequences->pass(0, 1, {8}, 4);
  const int64_t row = 2 * 16;
  EXPECT_TRUE(same_bits(filled.out().data() + 8 * row, asked.out().data() + 8 * row, 4 * row));
}

}  // namespace cached_attention_test
}  // namespace siamese::kernels
