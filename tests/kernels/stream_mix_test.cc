#include "siamese/kernels/stream_mix.h"

#include <limits>

#include "tests/kernels/kernel_testing.h"

#include "siamese/kernels/reference/stream_mix.h"

namespace siamese::kernels {
namespace {

SIAMESE_AT_EVERY_SIMD_LEVEL(StreamMixes);

using reference::Row;

constexpr int64_t kRows = 3;
enum class Normed { no, rms, layer };

struct Shape {
  int streams, outputs;
  bool each_row, branch, through;
  Normed norm;

  std::string text(int64_t cols) const {
    return std::to_string(streams) + " to " + std::to_string(outputs) + (each_row ? " each row" : " for all") +
           (branch ? " branch" : "") + (through ? " through" : "") +
           (norm == Normed::rms     ? " rms"
            : norm == Normed::layer ? " layer"
                                    : "") +
           " cols " + std::to_string(cols);
  }
};

// A write (n to n, with the branch) and a read (n to one, with a norm and what comes back through it) for every n, and
// counts that differ.
std::vector<Shape> shapes() {
  std::vector<Shape> all;
  for (const bool each_row : {true, false}) {
    for (int n = 1; n <= kMaxMixedStreams; ++n) {
      all.push_back({n, n, each_row, true, false, Normed::no});
      for (const Normed norm : {Normed::no, Normed::rms, Normed::layer}) {
        all.push_back({n, 1, each_row, false, true, norm});
        all.push_back({n, 1, each_row, n % 2 == 0 && norm == Normed::no, false, norm});
      }
    }
    all.push_back({2, 4, each_row, true, true, Normed::no});
    all.push_back({3, 2, each_row, false, true, Normed::no});
  }
  return all;
}

// One problem and its float result. Backward's sums start from random numbers: they are added to.
struct Case {
  Case(const Shape& s, int64_t width, int64_t row_count = kRows) : shape(s), rows(row_count), cols(width) {
    const int64_t size = rows * cols;
    const int64_t copies = s.each_row ? rows : 1;
    matrix = random_floats(copies * s.outputs * s.streams, "matrix");
    weights = random_floats(copies * s.outputs, "weights");
    z = random_floats(size, "z");
    gain = random_floats(cols, "gain", 1, 0.5);
    bias = random_floats(cols, "bias", 0, 0.5);
    for (int k = 0; k < kMaxMixedStreams; ++k) {
      const std::string name = std::to_string(k);
      streams.push_back(random_floats(size, "s" + name, 0.2));
      d_outputs.push_back(random_floats(size, "d" + name));
      through.push_back(random_floats(size, "t" + name));
      outputs.emplace_back(size, kUntouched);
      d_streams.emplace_back(size, kUntouched);
    }
    d_z.assign(static_cast<size_t>(size), kUntouched);
    d_matrix = random_floats(static_cast<int64_t>(matrix.size()), "d_matrix");
    d_weights = random_floats(static_cast<int64_t>(weights.size()), "d_weights");
    d_gain = random_floats(cols, "d_gain");
    d_bias = random_floats(cols, "d_bias");
    mean.assign(static_cast<size_t>(rows), kUntouched);
    rstd = mean;
    scratch.resize(static_cast<size_t>(kStreamMixScratchRows * cols));
    mix.cols = cols;
    mix.streams = s.streams;
    mix.outputs = s.outputs;
    mix.each_row = s.each_row;
    mix.matrix = matrix.data();
    mix.branch_weights = s.branch ? weights.data() : nullptr;
    mix.layer = s.norm == Normed::layer;
    if (s.norm == Normed::no) return;
    mix.norm = {true, 1e-5F, gain.data(), mix.layer ? bias.data() : nullptr, mean.data(), rstd.data()};
  }
  Case(const Case&) = delete;

  void forward(int64_t begin, int64_t end) {
    StreamMixRows data;
    for (size_t i = 0; i < static_cast<size_t>(shape.streams); ++i) data.streams[i] = streams[i].data();
    for (size_t j = 0; j < static_cast<size_t>(shape.outputs); ++j) data.outputs[j] = outputs[j].data();
    data.branch = shape.branch ? z.data() : nullptr;
    stream_mix_forward(mix, data, begin, end);
  }

  void backward(int64_t begin, int64_t end) {
    StreamMixGradients g;
    for (size_t i = 0; i < static_cast<size_t>(shape.streams); ++i) {
      g.streams[i] = streams[i].data();
      g.d_streams[i] = d_streams[i].data();
      if (shape.through) g.through[i] = through[i].data();
    }
    for (size_t j = 0; j < static_cast<size_t>(shape.outputs); ++j) g.d_outputs[j] = d_outputs[j].data();
    g.branch = shape.branch ? z.data() : nullptr;
    g.d_branch = d_z.data();
    g.d_matrix = d_matrix.data();
    g.d_branch_weights = d_weights.data();
    g.norm = {d_gain.data(), d_bias.data()};
    g.scratch = scratch.data();
    stream_mix_backward(mix, g, begin, end);
  }

  std::vector<const std::vector<float>*> results() const {
    std::vector<const std::vector<float>*> all = {&d_z, &d_matrix, &d_weights, &d_gain, &d_bias, &mean, &rstd};
    for (const auto& output : outputs) all.push_back(&output);
    for (const auto& gradient : d_streams) all.push_back(&gradient);
    return all;
  }

  Shape shape;
  int64_t rows, cols;
  std::vector<float> matrix, weights, z, gain, bias, d_z, d_matrix, d_weights, d_gain, d_bias, mean, rstd, scratch;
  std::vector<std::vector<float>> streams, d_outputs, through, outputs, d_streams;
  StreamMix mix;
};

Row row_at(const std::vector<float>& values, int64_t row, int64_t width) {
  return {values.begin() + row * width, values.begin() + (row + 1) * width};
}

std::vector<Row> rows_at(const std::vector<std::vector<float>>& arrays, int count, int64_t row, int64_t cols) {
  std::vector<Row> rows;
  for (int k = 0; k < count; ++k) rows.push_back(row_at(arrays[static_cast<size_t>(k)], row, cols));
  return rows;
}

// Float rounding of a few steps, relative to the largest value there is.
void expect_rows(const std::vector<float>& actual, const Row& expected, const std::string& what) {
  double largest = 0;
  for (const double value : expected) largest = std::max(largest, std::abs(value));
  expect_within(actual, expected, Row(expected.size(), 32 * kUlp * (1 + largest)), what);
}

// The terms of <d_j, s_i> without their signs: behind a norm they cancel almost to nothing, their roundings do not.
Row magnitudes(const reference::MixedRow& mix, const reference::NormState& state, const std::vector<Row>& streams,
               const std::vector<Row>& d_outputs) {
  Row all;
  for (const Row& d_output : d_outputs) {
    Row unused(d_output.size(), 0.0);
    const Row d = reference::norm_backward(mix.norm, state, d_output, unused, unused);
    for (const Row& stream : streams) {
      double sum = 0;
      for (size_t c = 0; c < d.size(); ++c) sum += std::abs(d[c] * stream[c]);
      all.push_back(sum);
    }
  }
  return all;
}

// `values` put, or added, where row `row` has its place among the expected coefficients.
void place(Row& expected, const Row& values, bool each_row, int64_t row) {
  for (size_t k = 0; k < values.size(); ++k) {
    if (each_row) {
      expected[static_cast<size_t>(row) * values.size() + k] = values[k];
    } else {
      expected[k] += values[k];
    }
  }
}

void expect_equals_reference(const Shape& s, int64_t cols) {
  const std::string what = s.text(cols);
  Case c(s, cols);
  Row d_matrix = widen(c.d_matrix), d_weights = widen(c.d_weights), d_z;
  Row matrix_bound(d_matrix.size(), 0.0);
  std::vector<Row> outputs(kMaxMixedStreams), d_streams(kMaxMixedStreams);
  reference::MixedRowGradients g;
  g.gain = widen(c.d_gain);
  g.bias = widen(c.d_bias);
  for (int64_t row = 0; row < kRows; ++row) {
    const int64_t own = s.each_row ? row : 0;
    reference::MixedRow mix;
    for (int64_t j = 0; j < s.outputs; ++j) mix.matrix.push_back(row_at(c.matrix, own * s.outputs + j, s.streams));
    if (s.branch) mix.branch_weights = row_at(c.weights, own, s.outputs);
    const bool layer = s.norm == Normed::layer;
    mix.norm = {s.norm != Normed::no, layer, static_cast<double>(1e-5F), widen(c.gain),
                layer ? widen(c.bias) : Row(static_cast<size_t>(cols), 0.0)};
    const std::vector<Row> streams = rows_at(c.streams, s.streams, row, cols);
    std::vector<Row> through = rows_at(c.through, s.streams, row, cols);
    if (!s.through) through.assign(through.size(), Row(static_cast<size_t>(cols), 0.0));
    reference::NormState state;
    const Row z = row_at(c.z, row, cols);
    const auto out = reference::mix_forward(mix, streams, z, state);
    const auto d_outputs = rows_at(c.d_outputs, s.outputs, row, cols);
    reference::mix_backward(mix, state, streams, z, d_outputs, through, g);
    const auto append = [](Row& to, const Row& from) { to.insert(to.end(), from.begin(), from.end()); };
    Row matrix_row;
    for (size_t j = 0; j < out.size(); ++j) append(outputs[j], out[j]);
    for (const Row& part : g.matrix) append(matrix_row, part);
    for (size_t i = 0; i < streams.size(); ++i) append(d_streams[i], g.streams[i]);
    append(d_z, g.branch);
    place(d_matrix, matrix_row, s.each_row, row);
    place(matrix_bound, magnitudes(mix, state, streams, d_outputs), s.each_row, row);
    place(d_weights, g.branch_weights, s.each_row, row);
  }
  c.forward(0, 1);
  c.forward(1, kRows);
  c.backward(0, 2);
  c.backward(2, kRows);
  for (int j = 0; j < s.outputs; ++j) {
    expect_rows(c.outputs[static_cast<size_t>(j)], outputs[static_cast<size_t>(j)], what + " out " + std::to_string(j));
  }
  for (int i = 0; i < s.streams; ++i) {
    expect_rows(c.d_streams[static_cast<size_t>(i)], d_streams[static_cast<size_t>(i)],
                what + " ds " + std::to_string(i));
  }
  for (double& bound : matrix_bound) bound = 32 * kUlp * (1 + bound);
  expect_within(c.d_matrix, d_matrix, matrix_bound, what + " dM");
  if (s.branch) {
    expect_rows(c.d_weights, d_weights, what + " db");
    expect_rows(c.d_z, d_z, what + " dz");
  }
  if (s.norm == Normed::no) return;
  expect_rows(c.d_gain, g.gain, what + " dgain");
  expect_rows(c.d_bias, g.bias, what + " dbias");
}

TEST_P(StreamMixes, ForwardAndBackwardEqualTheReference) {
  for (const Shape& shape : shapes()) {
    for (const int64_t cols : {1, 31, 32, 33, 257}) {
      // Of one number a norm keeps the sign: its gradient is the difference of almost equal numbers.
      if (cols == 1 && shape.norm != Normed::no) continue;
      expect_equals_reference(shape, cols);
    }
  }
}

TEST_P(StreamMixes, RowByRowGivesTheSameBits) {
  for (const Shape& shape : shapes()) {
    for (const int64_t cols : {1, 7, 33, 100}) {
      Case whole(shape, cols, 7), split(shape, cols, 7);
      whole.forward(0, 7);
      whole.backward(0, 7);
      for (int64_t row = 0; row < 7; ++row) split.forward(row, row + 1);
      for (int64_t row = 0; row < 7; ++row) split.backward(row, row + 1);
      for (size_t k = 0; k < whole.results().size(); ++k) {
        EXPECT_TRUE(same_bits(*whole.results()[k], *split.results()[k])) << shape.text(cols) << " result " << k;
      }
    }
  }
}

TEST_P(StreamMixes, LeavesOtherRowsAlone) {
  for (const Shape& shape : shapes()) {
    for (const int64_t cols : {1, 31, 32, 33}) {
      Case c(shape, cols);
      c.forward(1, 2);
      c.backward(1, 2);
      std::vector<const std::vector<float>*> written;
      for (int j = 0; j < shape.outputs; ++j) written.push_back(&c.outputs[static_cast<size_t>(j)]);
      for (int i = 0; i < shape.streams; ++i) written.push_back(&c.d_streams[static_cast<size_t>(i)]);
      if (shape.branch) written.push_back(&c.d_z);
      for (const auto* const values : written) {
        for (int64_t i = 0; i < kRows * cols; ++i) {
          const bool inside = i >= cols && i < 2 * cols;
          ASSERT_EQ((*values)[static_cast<size_t>(i)] != kUntouched, inside) << shape.text(cols) << " at " << i;
        }
      }
    }
  }
}

TEST_P(StreamMixes, NanStaysInItsRow) {
  const Shape shape{4, 4, true, true, false, Normed::no};
  for (const int64_t cols : {1, 17, 100}) {
    Case clean(shape, cols), broken(shape, cols);
    broken.streams[2][static_cast<size_t>(2 * cols - 1)] = std::numeric_limits<float>::quiet_NaN();
    for (Case* c : {&clean, &broken}) {
      c->forward(0, kRows);
      c->backward(0, kRows);
    }
    for (size_t j = 0; j < 4; ++j) {
      EXPECT_TRUE(std::isnan(broken.outputs[j][static_cast<size_t>(2 * cols - 1)]));
      EXPECT_TRUE(std::isnan(broken.d_matrix[16 + 4 * j + 2]));
      for (const int64_t row : {0, 2}) {
        EXPECT_TRUE(same_bits(&broken.outputs[j][row * cols], &clean.outputs[j][row * cols], cols));
        EXPECT_TRUE(same_bits(&broken.d_matrix[row * 16], &clean.d_matrix[row * 16], 16));
      }
    }
  }
}

}  // namespace
}  // namespace siamese::kernels
