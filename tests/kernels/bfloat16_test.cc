// A kernel on bfloat16 arrays gives what it gives on the same numbers as floats, rounded once: to the bit, except where
// it multiplies bfloat16 as they are.
#include "siamese/kernels/bfloat16.h"

#include <limits>

#include "tests/kernels/kernel_testing.h"

#include "siamese/kernels/activation.h"
#include "siamese/kernels/attention.h"
#include "siamese/kernels/cross_entropy.h"
#include "siamese/kernels/expert_rows.h"
#include "siamese/kernels/junction.h"
#include "siamese/kernels/outer_products.h"
#include "siamese/kernels/reference/outer_products.h"

namespace siamese::kernels {
namespace bfloat16_test {

SIAMESE_AT_EVERY_SIMD_LEVEL(Bfloat16Kernels);

Halves random_halves(int64_t size, const std::string& name, double center = 0, double scale = 1) {
  return rounded(random_floats(size, name, center, scale));
}

size_t sized(int64_t size) { return static_cast<size_t>(size); }

TEST(Bfloat16, RoundsToTheNearestTiesToEven) {
  EXPECT_EQ(to_bfloat16(1.0F).bits, 0x3F80);
  EXPECT_EQ(to_bfloat16(1.0F + 0x1p-8F).bits, 0x3F80);             // a tie, down to even
  EXPECT_EQ(to_bfloat16(1.0F + 0x1p-7F + 0x1p-8F).bits, 0x3F82);   // a tie, up to even
  EXPECT_EQ(to_bfloat16(1.0F + 0x1p-8F + 0x1p-20F).bits, 0x3F81);  // above a tie
  EXPECT_EQ(to_bfloat16(std::numeric_limits<float>::max()).bits, 0x7F80);
  EXPECT_EQ(to_bfloat16(-std::numeric_limits<float>::infinity()).bits, 0xFF80);
  EXPECT_EQ(to_bfloat16(-0.0F).bits, 0x8000);
  EXPECT_TRUE(std::isnan(to_float(to_bfloat16(std::bit_cast<float>(0x7F800001U)))));
  EXPECT_TRUE(std::isnan(to_float(to_bfloat16(std::bit_cast<float>(0xFFFFFFFFU)))));
}

// gelu of large numbers is the number itself: what is stored is what was loaded, and every rounding is seen by
// swiglu's product. NaN and infinities pass.
TEST_P(Bfloat16Kernels, Activations) {
  for (const auto kind : {Activation::swiglu, Activation::gelu, Activation::gelu_tanh}) {
    for (const int64_t cols : kWidths) {
      constexpr int64_t kRows = 3;
      const int64_t wide = kind == Activation::swiglu ? 2 * cols : cols;
      Halves x = random_halves(kRows * wide, "x", 0, 3);
      if (cols > 16) x[3] = to_bfloat16(std::numeric_limits<float>::quiet_NaN());
      if (cols > 16) x[5] = to_bfloat16(std::numeric_limits<float>::infinity());
      const Halves dy = random_halves(kRows * cols, "dy");
      Halves y(sized(kRows * cols)), again(y.size()), dx(x.size());
      activation_forward(kind, x.data(), y.data(), 0, 1, cols);
      activation_forward(kind, x.data(), y.data(), 1, kRows, cols);
      activation_backward(kind, x.data(), dy.data(), dx.data(), again.data(), 0, kRows, cols);
      const std::vector<float> exact_x = floats_of(x), exact_dy = floats_of(dy);
      std::vector<float> exact_y(y.size()), exact_dx(x.size());
      activation_forward(kind, exact_x.data(), exact_y.data(), 0, kRows, cols);
      activation_backward(kind, exact_x.data(), exact_dy.data(), exact_dx.data(), nullptr, 0, kRows, cols);
      expect_rounded(y, exact_y, "y " + std::to_string(cols));
      expect_rounded(again, exact_y, "y again " + std::to_string(cols));
      expect_rounded(dx, exact_dx, "dx " + std::to_string(cols));
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(Bfloat16Kernels, CrossEntropy) {
  constexpr int64_t kRows = 3;
  const std::vector<float> weights = {1, 0, 0.5F};
  for (const int64_t vocab : {1, 2, 31, 32, 33, 257, 5000}) {
    const Halves logits = random_halves(kRows * vocab, "logits", 0, 3);
    const std::vector<int64_t> targets = {0, vocab / 2, vocab - 1};
    Halves gradient = logits, kept = logits;
    std::vector<float> exact = floats_of(logits), nll(3), z(3), exact_nll(3), exact_z(3);
    cross_entropy_with_gradient({gradient.data(), targets.data(), weights.data(), nll.data(), z.data(), vocab}, 0.3,
                                0.01, 0, kRows);
    cross_entropy_with_gradient({exact.data(), targets.data(), weights.data(), exact_nll.data(), exact_z.data(), vocab},
                                0.3, 0.01, 0, kRows);
    EXPECT_EQ(nll, exact_nll);
    EXPECT_EQ(z, exact_z);
    expect_rounded(gradient, exact, "gradient " + std::to_string(vocab));
    cross_entropy({kept.data(), targets.data(), weights.data(), nll.data(), z.data(), vocab}, 0, kRows);
    EXPECT_EQ(nll, exact_nll);
    expect_rounded(kept, floats_of(logits), "the logits stay");
    if (HasFatalFailure()) return;
  }
}

TEST_P(Bfloat16Kernels, ExpertRows) {
  constexpr int64_t kRows = 4;
  const std::vector<int64_t> source = {2, 0, 3, 1}, place = {1, 0, 3, 2, 0, 1, 2, 3};
  for (const int64_t cols : kWidths) {
    const Halves x = random_halves(kRows * cols, "x"), b = random_halves(kRows * cols, "b");
    const std::vector<float> factors = random_floats(kRows, "factors"), weights = random_floats(2 * kRows, "weights");
    const std::vector<float> exact_x = floats_of(x);
    std::vector<float> exact(x.size()), exact_b = floats_of(b), products(kRows), exact_products(kRows);
    Halves half(x.size()), half_b = b;
    for (const float* const factor : {factors.data(), static_cast<const float*>(nullptr)}) {
      gather_rows(x.data(), source.data(), factor, half.data(), 0, kRows, cols);
      gather_rows(exact_x.data(), source.data(), factor, exact.data(), 0, kRows, cols);
      expect_rounded(half, exact, "gathered " + std::to_string(cols));
    }
    combine_rows(x.data(), place.data(), weights.data(), half.data(), 0, kRows, 2, cols);
    combine_rows(exact_x.data(), place.data(), weights.data(), exact.data(), 0, kRows, 2, cols);
    expect_rounded(half, exact, "combined " + std::to_string(cols));
    weigh_rows(x.data(), half_b.data(), factors.data(), products.data(), 0, kRows, cols);
    weigh_rows(exact_x.data(), exact_b.data(), factors.data(), exact_products.data(), 0, kRows, cols);
    expect_rounded(half_b, exact_b, "weighed " + std::to_string(cols));
    EXPECT_EQ(products, exact_products);
    if (HasFatalFailure()) return;
  }
}

// Whether kernels multiply pairs of bfloat16 at this SIMD level.
bool multiplies_pairs(int64_t target) {
  return has_bfloat16_products() && std::string(simd_name(target)).starts_with("AVX3");
}

// The length of the difference in units of the exact length.
double relative_error(const std::vector<float>& actual, const std::vector<float>& exact) {
  double difference = 0, length = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    difference += std::pow(static_cast<double>(actual[i]) - static_cast<double>(exact[i]), 2);
    length += std::pow(static_cast<double>(exact[i]), 2);
  }
  return std::sqrt(difference / length);
}

// Of even dims, each pair of a head by an angle of its own.
class Rotations {
 public:
  Rotations(int64_t tokens, int64_t dim) : present_(dim % 2 == 0) {
    for (const float angle : random_floats(tokens * (dim / 2), "angle", 0, 3)) {
      cos_.push_back(std::cos(angle));
      sin_.push_back(std::sin(angle));
    }
  }
  const float* cos() const { return present_ ? cos_.data() : nullptr; }
  const float* sin() const { return present_ ? sin_.data() : nullptr; }

 private:
  bool present_;
  std::vector<float> cos_, sin_;
};

// Products of pairs round q, k and v after norm and rotation, p and ds: each to 2^-9 of itself at most, and an error of
// q . k is one of the exponent. Their errors are independent and of either sign; what is kept is rounded as well.
TEST_P(Bfloat16Kernels, AttentionOfRoundedOperands) {
  for (const int64_t dim : {1, 8, 20, 33, 64}) {
    for (const int64_t tokens : {1, 2, 7, 33, 65, 130, 250}) {
      const AttentionShape s{dim > 1 ? 2 : 1, tokens, 4, 2, dim, tokens != 33, 1e-5F};
      const Halves qkv = random_halves(s.batch * tokens * 8 * dim, "qkv");
      const Halves d_out = random_halves(s.batch * tokens * 4 * dim, "d_out");
      const std::vector<float> exact_qkv = floats_of(qkv), exact_d_out = floats_of(d_out);
      const std::vector<float> gain = random_floats(dim, "gain", 1, 0.3);
      const Rotations turned(tokens, dim);
      // The norm of one number is constant: at one dim v has none, so that something comes back, and there are few
      // numbers, since near 0 all that comes back through the norm of q is rounding.
      const float* const of_v = dim > 1 ? gain.data() : nullptr;
      const AttentionInputsOf<Bfloat16> half{qkv.data(), turned.cos(), turned.sin(), gain.data(), gain.data(), of_v};
      const AttentionInputs exact{exact_qkv.data(), turned.cos(), turned.sin(), gain.data(), gain.data(), of_v};
      Halves out(d_out.size()), d_qkv(qkv.size());
      std::vector<float> exact_out(d_out.size()), exact_d_qkv(qkv.size());
      std::vector<float> lse(sized(s.batch * 4 * tokens)), exact_lse(lse.size());
      std::vector<float> d_gains(sized(s.batch * s.heads * attention_sizes(s, true).blocks * 3 * dim)),
          exact_d_gains(d_gains.size());
      const auto run = [&](const auto& inputs, auto& to, auto& log_sums, const auto& d_to, auto& d_from, auto& d_gain) {
        std::vector<float> scratch(sized(attention_backward_scratch(s) + attention_forward_scratch(s)),
                                   std::numeric_limits<float>::quiet_NaN());
        attention_forward(s, inputs, to.data(), log_sums.data(), scratch.data(), 0, s.tasks());
        attention_backward(s, inputs, {to.data(), log_sums.data(), d_to.data(), d_from.data(), d_gain.data()},
                           scratch.data(), 0, s.tasks());
      };
      run(half, out, lse, d_out, d_qkv, d_gains);
      run(exact, exact_out, exact_lse, exact_d_out, exact_d_qkv, exact_d_gains);
      const std::string what = "D" + std::to_string(dim) + " T" + std::to_string(tokens);
      EXPECT_LE(relative_error(floats_of(out), exact_out), 0x1p-7) << what;
      EXPECT_LE(relative_error(lse, exact_lse), 0x1p-7) << what;
      EXPECT_LE(relative_error(floats_of(d_qkv), exact_d_qkv), 0x1p-6) << what;
      // The softmax of one token and the norm of one number are constant: nothing comes back to q and k but rounding.
      if (tokens == 1 || dim == 1) continue;
      EXPECT_LE(relative_error(d_gains, exact_d_gains), 0x1p-6) << what;
      // q, k and v each for itself: the longest would hide the others.
      for (const auto& [name, first, heads] : {std::tuple{"q", 0, 4}, {"k", 4, 2}, {"v", 6, 2}}) {
        const auto part = [&, from = first, count = heads](const std::vector<float>& rows) {
          std::vector<float> found;
          for (size_t row = 0; row < rows.size(); row += sized(8 * dim)) {
            const auto at = rows.begin() + static_cast<ptrdiff_t>(row) + from * dim;
            found.insert(found.end(), at, at + count * dim);
          }
          return found;
        };
        EXPECT_LE(relative_error(part(floats_of(d_qkv)), part(exact_d_qkv)), 0x1p-6) << name << " " << what;
      }
    }
  }
}

// Backward from the rounded output, as it is kept.
TEST_P(Bfloat16Kernels, Attention) {
  if (multiplies_pairs(GetParam())) return;  // AttentionOfRoundedOperands
  for (const int64_t dim : {1, 8, 20, 33, 64}) {
    for (const int64_t tokens : {1, 7, 33, 130}) {
      const AttentionShape s{2, tokens, 4, 2, dim, tokens != 33, 1e-5F};
      const Halves qkv = random_halves(s.batch * tokens * 8 * dim, "qkv", 0.2);
      const Halves d_out = random_halves(s.batch * tokens * 4 * dim, "d_out");
      const std::vector<float> exact_qkv = floats_of(qkv), exact_d_out = floats_of(d_out);
      const std::vector<float> gain = random_floats(dim, "gain", 1, 0.5);
      const std::vector<float> cos = random_floats(tokens * (dim / 2), "cos"), sin = random_floats(tokens * dim, "sin");
      const float* const rope_cos = dim % 2 == 0 ? cos.data() : nullptr;
      const float* const rope_sin = dim % 2 == 0 ? sin.data() : nullptr;
      const AttentionInputsOf<Bfloat16> half{qkv.data(), rope_cos, rope_sin, gain.data(), nullptr, gain.data()};
      const AttentionInputs exact{exact_qkv.data(), rope_cos, rope_sin, gain.data(), nullptr, gain.data()};
      Halves out(d_out.size()), d_qkv(qkv.size());
      std::vector<float> exact_out(d_out.size()), exact_d_qkv(qkv.size());
      std::vector<float> lse(sized(s.batch * 4 * tokens)), exact_lse(lse.size());
      std::vector<float> d_gains(sized(s.batch * s.heads * attention_sizes(s, true).blocks * 3 * dim)),
          exact_d_gains(d_gains.size());
      std::vector<float> scratch(sized(attention_backward_scratch(s) + attention_forward_scratch(s)));
      attention_forward(s, half, out.data(), lse.data(), scratch.data(), 0, s.tasks());
      attention_forward(s, exact, exact_out.data(), exact_lse.data(), scratch.data(), 0, s.tasks());
      const std::string what = "D" + std::to_string(dim) + " T" + std::to_string(tokens);
      expect_rounded(out, exact_out, "out " + what);
      EXPECT_EQ(lse, exact_lse) << what;
      exact_out = floats_of(out);
      attention_backward(s, half, {out.data(), lse.data(), d_out.data(), d_qkv.data(), d_gains.data()}, scratch.data(),
                         0, s.tasks());
      attention_backward(s, exact,
                         {exact_out.data(), lse.data(), exact_d_out.data(), exact_d_qkv.data(), exact_d_gains.data()},
                         scratch.data(), 0, s.tasks());
      expect_rounded(d_qkv, exact_d_qkv, "d_qkv " + what);
      EXPECT_EQ(d_gains, exact_d_gains) << what;
      if (HasFatalFailure()) return;
    }
  }
}

// Products of bfloat16 are exact, their sums are not: two rows may be added before they meet the rest, so that there
// are fewer roundings than rows, each of the sum of magnitudes. Some CPUs take what is below the smallest normal number
// for zero. An element does not depend on the range it is computed in.
TEST_P(Bfloat16Kernels, OuterProducts) {
  struct Sizes {
    int64_t rows, out, in;
  };
  for (const auto& [rows, out, in] : {Sizes{1, 1, 1},
                                      {2, 13, 33},
                                      {3, 12, 32},
                                      {31, 33, 31},
                                      {257, 31, 65},
                                      {600, 100, 7},
                                      {601, 211, 1003},
                                      {1025, 24, 64}}) {
    const Halves dy = random_halves(rows * out, "dy"), x = random_halves(rows * in, "x", 0.1);
    const auto before = random_floats(out * in, "dw", 0, 3);
    std::vector<float> dw = before, parts = before;
    std::vector<float> scratch(sized(outer_products_scratch(rows, out, in)));
    add_outer_products(dy.data(), x.data(), dw.data(), rows, out, in, 0, out, scratch.data());
    add_outer_products(dy.data(), x.data(), parts.data(), rows, out, in, 0, out / 3, scratch.data());
    add_outer_products(dy.data(), x.data(), parts.data(), rows, out, in, out / 3, out, scratch.data());
    ASSERT_TRUE(same_bits(dw.data(), parts.data(), out * in));
    std::vector<double> expected = widen(before), bound = widen(before);
    std::vector<double> wide_dy = widen(floats_of(dy)), wide_x = widen(floats_of(x));
    reference::add_outer_products(wide_dy.data(), wide_x.data(), expected.data(), rows, out, in);
    for (auto* values : {&wide_dy, &wide_x, &bound}) {
      for (double& value : *values) value = std::abs(value);
    }
    reference::add_outer_products(wide_dy.data(), wide_x.data(), bound.data(), rows, out, in);
    for (double& value : bound) value *= static_cast<double>(rows + 2) * kUlp;
    expect_within(dw, expected, bound, "dw of " + std::to_string(rows) + " rows");
    if (HasFatalFailure()) return;
  }
}

// A junction with one or two streams and any set of norms, on floats or bfloat16.
template <class T>
struct JunctionRun {
  JunctionRun(int64_t width, bool two_streams, int norms, bool layer)
      : cols(width), two(two_streams), gain(random_floats(width, "gain", 1, 0.5)) {
    junction.layer = layer;
    junction.cols = cols;
    junction.x_branch = 0.7F;
    junction.y_branch = 1.25F;
    junction.input_scale = 0.75F;
    RowNorm* const all[] = {&junction.branch_norm, &junction.x_norm, &junction.y_norm, &junction.input_norm};
    for (int i = 0; i < 4; ++i) {
      if ((norms >> i & 1) == 0 || (i == 1 && !two)) continue;
      all[i]->present = true;
      all[i]->eps = 1e-5F;
      all[i]->gain = gain.data();
      all[i]->mean = statistics.data() + (2 * i) * kRows;
      all[i]->rstd = statistics.data() + (2 * i + 1) * kRows;
    }
  }

  void run(const std::vector<T>& branch, const std::vector<T>& d_input) {
    const auto x = random_floats(kRows * cols, "x"), y = random_floats(kRows * cols, "y");
    const auto d_x_out = random_floats(kRows * cols, "d_x_out"), d_y_sum = random_floats(kRows * cols, "d_y_sum");
    JunctionRowsOf<T> rows;
    rows.branch = branch.data();
    rows.x = two ? x.data() : nullptr;
    rows.y = y.data();
    rows.x_sum = two ? x_sum.data() : nullptr;
    rows.y_sum = y_sum.data();
    rows.x_out = junction.x_norm.present ? x_out.data() : nullptr;
    rows.input = input.data();
    rows.scratch = scratch.data();
    junction_forward(junction, rows, 0, kRows);
    JunctionGradientsOf<T> back;
    back.branch = branch.data();
    back.x_sum = two ? x_sum.data() : nullptr;
    back.y_sum = y_sum.data();
    back.d_x_out = two ? d_x_out.data() : nullptr;
    back.d_y_sum = d_y_sum.data();
    back.d_input = d_input.data();
    back.d_x = two ? d_x.data() : nullptr;
    back.d_y = d_y.data();
    back.d_branch = d_branch.data();
    back.input_norm.gain = d_gain.data();
    back.scratch = scratch.data();
    junction_backward(junction, back, 0, kRows);
  }

  static constexpr int64_t kRows = 3;
  int64_t cols;
  bool two;
  Junction junction;
  std::vector<float> gain;
  std::vector<float> statistics = std::vector<float>(8 * kRows);
  std::vector<float> scratch = std::vector<float>(sized(kJunctionScratchRows * cols));
  std::vector<float> x_sum = std::vector<float>(sized(kRows * cols)), y_sum = x_sum, x_out = x_sum, d_x = x_sum,
                     d_y = x_sum;
  std::vector<float> d_gain = std::vector<float>(sized(cols));
  std::vector<T> input = std::vector<T>(sized(kRows * cols)), d_branch = input;
};

TEST_P(Bfloat16Kernels, Junction) {
  for (const int64_t cols : {1, 16, 31, 33, 100, 257}) {
    for (int which = 0; which < 64; ++which) {
      const bool two = (which & 16) != 0, layer = (which & 32) != 0;
      const Halves branch = random_halves(3 * cols, "branch"), d_input = random_halves(3 * cols, "d_input");
      JunctionRun<Bfloat16> half(cols, two, which & 15, layer);
      JunctionRun<float> exact(cols, two, which & 15, layer);
      half.run(branch, d_input);
      exact.run(floats_of(branch), floats_of(d_input));
      const std::string what = std::to_string(which) + " at " + std::to_string(cols);
      EXPECT_EQ(half.x_sum, exact.x_sum) << what;
      EXPECT_EQ(half.y_sum, exact.y_sum) << what;
      EXPECT_EQ(half.x_out, exact.x_out) << what;
      EXPECT_EQ(half.statistics, exact.statistics) << what;
      expect_rounded(half.input, exact.input, "input " + what);
      EXPECT_EQ(half.d_x, exact.d_x) << what;
      EXPECT_EQ(half.d_y, exact.d_y) << what;
      EXPECT_EQ(half.d_gain, exact.d_gain) << what;
      expect_rounded(half.d_branch, exact.d_branch, "d_branch " + what);
      if (HasFailure()) return;
    }
  }
}

}  // namespace bfloat16_test
}  // namespace siamese::kernels
