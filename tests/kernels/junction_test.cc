#include "siamese/kernels/junction.h"

#include <deque>

#include "tests/kernels/kernel_testing.h"

#include "siamese/kernels/reference/junction.h"

namespace siamese::kernels {
namespace {

SIAMESE_AT_EVERY_SIMD_LEVEL(Junctions);

struct Case {
  const char* name;
  bool two_streams, branch, branch_norm, x_norm, x_scale, y_norm, input_norm;
  double x_branch, y_branch, y_skip, input_scale;
};

// Every combination that a scheme makes, and the first site of each, where nothing is pending.
constexpr Case kCases[] = {
    {"pre", false, true, false, false, false, true, false, 0, 1, 1, 1},
    {"pre first", false, false, false, false, false, true, false, 0, 0, 1, 1},
    {"lns", false, true, false, false, false, true, false, 0, 1, 1, 0.5},
    {"peri", false, true, true, false, false, true, false, 0, 1, 1, 1},
    {"olmo2", false, true, true, false, false, false, false, 0, 1, 1, 1},
    {"deepnorm", false, true, false, false, false, true, false, 0, 1, 1.7, 1},
    {"siamese", true, true, false, true, false, true, true, 0.7071, 1, 1, 1},
    {"siamese first", true, false, false, true, false, true, true, 0, 0, 1, 1},
    {"siamese without input norm", true, true, false, true, false, true, false, 0.5, 1, 1, 1},
    {"siamese hybrid attention", true, true, false, false, true, true, false, 0.5, 1, 1, 1},
};

constexpr int64_t kRows = 3;

class Example {
 public:
  Example(const Case& c, bool layer, int64_t cols) : c_(c), cols_(cols) {
    const auto size = kRows * cols;
    z = random_floats(size, "z");
    x = random_floats(size, "x", 0.2);
    y = random_floats(size, "y", -0.1, 2);
    d_x_out = random_floats(size, "d_x_out");
    d_y_sum = random_floats(size, "d_y_sum");
    d_input = random_floats(size, "d_input");
    x_scale = random_floats(cols, "x_scale", 1, 0.3);
    fast.layer = layer;
    fast.cols = cols;
    slow.two_streams = c.two_streams;
    slow.has_branch = c.branch;
    slow.x_branch = fast.x_branch = static_cast<float>(c.x_branch);
    slow.y_branch = fast.y_branch = static_cast<float>(c.y_branch);
    slow.y_skip = fast.y_skip = static_cast<float>(c.y_skip);
    slow.input_scale = fast.input_scale = static_cast<float>(c.input_scale);
    fast.x_scale = c.x_scale ? x_scale.data() : nullptr;
    slow.x_scale = c.x_scale ? widen(x_scale) : reference::Row(static_cast<size_t>(cols), 1.0);
    add_norm(c.branch_norm, "branch", fast.branch_norm, slow.branch_norm);
    add_norm(c.x_norm, "x", fast.x_norm, slow.x_norm);
    add_norm(c.y_norm, "y", fast.y_norm, slow.y_norm);
    add_norm(c.input_norm, "input", fast.input_norm, slow.input_norm);
  }

  std::vector<float> z, x, y, d_x_out, d_y_sum, d_input, x_scale;
  Junction fast;
  reference::JunctionRow slow;

 private:
  void add_norm(bool present, const std::string& name, RowNorm& fast_norm, reference::Norm& slow_norm) {
    slow_norm = {present, fast.layer, 1e-5, {}, {}};
    if (!present) return;
    auto& gain = arrays_.emplace_back(random_floats(cols_, name + "gain", 1, 0.5));
    auto& bias = arrays_.emplace_back(fast.layer ? random_floats(cols_, name + "bias", 0, 0.5)
                                                 : std::vector<float>(static_cast<size_t>(cols_), 0.0F));
    slow_norm.gain = widen(gain);
    slow_norm.bias = widen(bias);
    slow_norm.eps = static_cast<double>(1e-5F);
    fast_norm.present = true;
    fast_norm.eps = 1e-5F;
    fast_norm.gain = gain.data();
    fast_norm.bias = fast.layer ? bias.data() : nullptr;
    fast_norm.mean = arrays_.emplace_back(std::vector<float>(kRows)).data();
    fast_norm.rstd = arrays_.emplace_back(std::vector<float>(kRows)).data();
  }

  Case c_;
  int64_t cols_;
  std::deque<std::vector<float>> arrays_;  // stay where they are
};

reference::Row row_of(const std::vector<float>& values, int64_t row, int64_t cols) {
  return {values.begin() + row * cols, values.begin() + (row + 1) * cols};
}

// Float rounding of a few steps, relative to the largest value there is.
void expect_rows(const std::vector<float>& actual, const reference::Row& expected, const std::string& what) {
  double largest = 0;
  for (const double value : expected) largest = std::max(largest, std::abs(value));
  expect_within(actual, expected, std::vector<double>(expected.size(), 32 * kUlp * (1 + largest)), what);
}

void append(reference::Row& to, const reference::Row& from) { to.insert(to.end(), from.begin(), from.end()); }

TEST_P(Junctions, ForwardAndBackwardEqualTheReference) {
  for (const auto& c : kCases) {
    for (const bool layer : {false, true}) {
      for (const int64_t cols : {1, 31, 32, 33, 257, 768, 1024}) {
        if (cols == 1 && layer) continue;  // the variance of one number is 0: the gradient is all rounding
        const std::string what = std::string(c.name) + (layer ? " layer " : " rms ") + std::to_string(cols);
        const Example s(c, layer, cols);
        const auto size = static_cast<size_t>(kRows * cols);
        const auto width = static_cast<size_t>(cols);
        std::vector<float> x_sum(size), y_sum(size), x_out(size), input(size);
        const bool sums = c.branch || c.y_skip != 1;
        JunctionRows rows;
        rows.branch = c.branch ? s.z.data() : nullptr;
        rows.x = c.two_streams ? s.x.data() : nullptr;
        rows.y = s.y.data();
        rows.x_sum = sums && c.two_streams ? x_sum.data() : nullptr;
        rows.y_sum = sums ? y_sum.data() : nullptr;
        rows.x_out = c.x_norm ? x_out.data() : nullptr;
        rows.input = input.data();
        junction_forward(s.fast, rows, 0, 1);
        junction_forward(s.fast, rows, 1, kRows);

        const auto zeros = [&] { return std::vector<float>(width, 0.0F); };
        std::vector<float> d_x(size), d_y(size), d_z(size), scratch(width * kJunctionScratchRows);
        std::vector<float> x_scale = zeros(),
                           grads[4][2] = {
                               {zeros(), zeros()}, {zeros(), zeros()}, {zeros(), zeros()}, {zeros(), zeros()}};
        JunctionGradients g;
        g.branch = s.z.data();
        g.x_sum = !c.two_streams ? nullptr : sums ? x_sum.data() : s.x.data();
        g.y_sum = sums ? y_sum.data() : s.y.data();
        g.d_x_out = s.d_x_out.data();
        g.d_y_sum = s.d_y_sum.data();
        g.d_input = s.d_input.data();
        g.d_x = c.two_streams ? d_x.data() : nullptr;
        g.d_y = d_y.data();
        g.d_branch = c.branch ? d_z.data() : nullptr;
        g.d_x_scale = x_scale.data();
        g.branch_norm = {grads[0][0].data(), grads[0][1].data()};
        g.x_norm = {grads[1][0].data(), grads[1][1].data()};
        g.y_norm = {grads[2][0].data(), grads[2][1].data()};
        g.input_norm = {grads[3][0].data(), grads[3][1].data()};
        g.scratch = scratch.data();
        junction_backward(s.fast, g, 0, 2);
        junction_backward(s.fast, g, 2, kRows);

        reference::Row want_x_sum, want_y_sum, want_x, want_input, want_dz, want_dx, want_dy;
        reference::JunctionRowGradients want;
        for (auto* const sum : {&want.x_scale, &want.branch_gain, &want.branch_bias, &want.x_gain, &want.x_bias,
                                &want.y_gain, &want.y_bias, &want.input_gain, &want.input_bias}) {
          sum->assign(width, 0.0);
        }
        for (int64_t row = 0; row < kRows; ++row) {
          const auto state =
              reference::forward(s.slow, row_of(s.z, row, cols), row_of(s.x, row, cols), row_of(s.y, row, cols));
          append(want_x_sum, state.x_sum);
          append(want_y_sum, state.y_sum);
          append(want_x, state.x_out);
          append(want_input, state.result);
          reference::backward(s.slow, state, row_of(s.d_x_out, row, cols), row_of(s.d_y_sum, row, cols),
                              row_of(s.d_input, row, cols), want);
          append(want_dz, want.z);
          append(want_dx, want.x);
          append(want_dy, want.y);
        }
        expect_rows(input, want_input, what + " input");
        if (sums) expect_rows(y_sum, want_y_sum, what + " V");
        if (sums && c.two_streams) expect_rows(x_sum, want_x_sum, what + " U");
        if (c.x_norm) expect_rows(x_out, want_x, what + " X");
        expect_rows(d_y, want_dy, what + " dy");
        if (c.two_streams) expect_rows(d_x, want_dx, what + " dx");
        if (c.branch) expect_rows(d_z, want_dz, what + " dz");
        if (c.x_scale) expect_rows(x_scale, want.x_scale, what + " dc1");
        const std::pair<const reference::Row*, const reference::Row*> sums_wanted[] = {
            {&want.branch_gain, &want.branch_bias},
            {&want.x_gain, &want.x_bias},
            {&want.y_gain, &want.y_bias},
            {&want.input_gain, &want.input_bias}};
        const bool present[] = {c.branch && c.branch_norm, c.x_norm, c.y_norm, c.input_norm};
        for (size_t norm = 0; norm < 4; ++norm) {
          if (!present[norm]) continue;
          expect_rows(grads[norm][0], *sums_wanted[norm].first, what + " dgain " + std::to_string(norm));
          expect_rows(grads[norm][1], *sums_wanted[norm].second, what + " dbias " + std::to_string(norm));
        }
      }
    }
  }
}

// d_branch and the gain gradient of the y norm of the siamese case, its rows in two calls; without d_x and d_y they go
// through the scratch rows instead.
std::vector<float> siamese_gradients(bool layer, int64_t cols, int64_t split, bool outputs_wanted) {
  const Example s(kCases[6], layer, cols);
  const auto size = static_cast<size_t>(kRows * cols);
  std::vector<float> x_sum(size), y_sum(size), x_out(size), input(size), d_x(size), d_y(size);
  std::vector<float> scratch(static_cast<size_t>(cols * kJunctionScratchRows)), result(size + size_t(cols));
  const JunctionRows rows{s.z.data(), s.x.data(), s.y.data(), x_sum.data(), y_sum.data(), x_out.data(), input.data()};
  junction_forward(s.fast, rows, 0, split);
  junction_forward(s.fast, rows, split, kRows);
  JunctionGradients g;
  g.x_sum = x_sum.data();
  g.y_sum = y_sum.data();
  g.d_x_out = s.d_x_out.data();
  g.d_y_sum = s.d_y_sum.data();
  g.d_input = s.d_input.data();
  g.d_x = outputs_wanted ? d_x.data() : nullptr;
  g.d_y = outputs_wanted ? d_y.data() : nullptr;
  g.d_branch = result.data();
  g.y_norm.gain = result.data() + size;
  g.scratch = scratch.data();
  junction_backward(s.fast, g, 0, split);
  junction_backward(s.fast, g, split, kRows);
  result.insert(result.end(), input.begin(), input.end());
  return result;
}

TEST_P(Junctions, BitsDependNeitherOnTheRangeNorOnWhatIsWanted) {
  for (const bool layer : {false, true}) {
    for (const int64_t cols : {1, 31, 33, 257}) {
      const auto expected = siamese_gradients(layer, cols, kRows, true);
      EXPECT_TRUE(same_bits(siamese_gradients(layer, cols, 1, true), expected)) << layer << " " << cols;
      EXPECT_TRUE(same_bits(siamese_gradients(layer, cols, 2, false), expected)) << layer << " " << cols;
    }
  }
}

}  // namespace
}  // namespace siamese::kernels
