#include "siamese/kernels/stream_mix.h"

#include <limits>

#include "tests/kernels/kernel_testing.h"

#include "siamese/kernels/reference/stream_mix.h"

namespace siamese::kernels {
namespace {

SIAMESE_AT_EVERY_SIMD_LEVEL(StreamMixes);

using reference::Row;

constexpr int64_t kStreamMixRows = 3;
enum class MixNormed { no, rms, layer };

struct StreamMixShape {
  int streams, outputs;
  bool each_row, branch, through;
  MixNormed norm;

  std::string text(int64_t cols) const {
    return std::to_string(streams) + " to " + std::to_string(outputs) + (each_row ? " each row" : " for all") +
           (branch ? " branch" : "") + (through ? " through" : "") +
           (norm == MixNormed::rms     ? " rms"
            : norm == MixNormed::layer ? " layer"
                                       : "") +
           " cols " + std::to_string(cols);
  }
};

// A write (n to n, with the branch) and a read (n to one, with a norm and what comes back through it) for every n, and
// counts that differ.
std::vector<StreamMixShape> mix_shapes() {
  std::vector<StreamMixShape> all;
  for (const bool each_row : {true, false}) {
    for (int n = 1; n <= kMaxMixedStreams; ++n) {
      all.push_back({n, n, each_row, true, false, MixNormed::no});
      for (const MixNormed norm : {MixNormed::no, MixNormed::rms, MixNormed::layer}) {
        all.push_back({n, 1, each_row, false, true, norm});
        all.push_back({n, 1, each_row, n % 2 == 0 && norm == MixNormed::no, false, norm});
      }
    }
    all.push_back({2, 4, each_row, true, true, MixNormed::no});
    all.push_back({3, 2, each_row, false, true, MixNormed::no});
  }
  return all;
}

enum Wanted { kStreams = 1, kBranch = 2, kMatrix = 4, kWeights = 8, kNorm = 16, kOddStreams = 32, kAllWanted = 31 };

// One problem and its float result. Backward's sums start from random numbers: they are added to.
struct StreamMixCase {
  StreamMixCase(const StreamMixShape& s, int64_t width, int64_t row_count = kStreamMixRows)
      : shape(s), rows(row_count), cols(width) {
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
    mix.layer = s.norm == MixNormed::layer;
    if (s.norm == MixNormed::no) return;
    mix.norm = {true, 1e-5F, gain.data(), mix.layer ? bias.data() : nullptr, mean.data(), rstd.data()};
  }
  StreamMixCase(const StreamMixCase&) = delete;

  // Whether a gradient comes to output j, and whether that of stream i is wanted; if not, the kernel gets a null.
  bool gives(size_t j) const { return (given >> j & 1) != 0; }
  bool wants_stream(size_t i) const { return (wanted & kStreams) != 0 || ((wanted & kOddStreams) != 0 && i % 2 == 1); }

  void forward(int64_t begin, int64_t end) {
    StreamMixRows data;
    for (size_t i = 0; i < static_cast<size_t>(shape.streams); ++i) data.streams[i] = streams[i].data();
    for (size_t j = 0; j < static_cast<size_t>(shape.outputs); ++j) data.outputs[j] = outputs[j].data();
    data.branch = shape.branch ? z.data() : nullptr;
    if (half) {
      data.half_output = half_output.data();
      data.outputs[0] = nullptr;
      data.scratch = scratch.data();
    }
    stream_mix_forward(mix, data, begin, end);
  }

  void backward(int64_t begin, int64_t end) {
    StreamMixGradients g;
    for (size_t i = 0; i < static_cast<size_t>(shape.streams); ++i) {
      g.streams[i] = streams[i].data();
      if (wants_stream(i)) g.d_streams[i] = d_streams[i].data();
      if (shape.through) g.through[i] = through[i].data();
    }
    for (size_t j = 0; j < static_cast<size_t>(shape.outputs); ++j) {
      if (gives(j)) g.d_outputs[j] = d_outputs[j].data();
    }
    if (half) {
      g.half_d_output = half_d_output.data();
      g.d_outputs[0] = nullptr;
    }
    g.branch = shape.branch ? z.data() : nullptr;
    if ((wanted & kBranch) != 0) g.d_branch = d_z.data();
    if ((wanted & kMatrix) != 0) g.d_matrix = d_matrix.data();
    if ((wanted & kWeights) != 0) g.d_branch_weights = d_weights.data();
    if ((wanted & kNorm) != 0) g.norm = {d_gain.data(), d_bias.data()};
    g.scratch = scratch.data();
    stream_mix_backward(mix, g, begin, end);
  }

  std::vector<const std::vector<float>*> results() const {
    std::vector<const std::vector<float>*> all = {&d_z, &d_matrix, &d_weights, &d_gain, &d_bias, &mean, &rstd};
    for (const auto& output : outputs) all.push_back(&output);
    for (const auto& gradient : d_streams) all.push_back(&gradient);
    return all;
  }

  StreamMixShape shape;
  int64_t rows, cols;
  int given = 15;           // a bit for each output
  int wanted = kAllWanted;  // of the bits above
  bool half = false;        // the one output and its gradient are bfloat16
  Halves half_output, half_d_output;
  std::vector<float> matrix, weights, z, gain, bias, d_z, d_matrix, d_weights, d_gain, d_bias, mean, rstd, scratch;
  std::vector<std::vector<float>> streams, d_outputs, through, outputs, d_streams;
  StreamMix mix;
};

Row mix_row_at(const std::vector<float>& values, int64_t row, int64_t width) {
  return {values.begin() + row * width, values.begin() + (row + 1) * width};
}

std::vector<Row> rows_at(const std::vector<std::vector<float>>& arrays, int count, int64_t row, int64_t cols) {
  std::vector<Row> rows;
  for (int k = 0; k < count; ++k) rows.push_back(mix_row_at(arrays[static_cast<size_t>(k)], row, cols));
  return rows;
}

// Float rounding of a few steps, relative to the largest value of the tensor.
constexpr double kStreamMixTolerance = 32 * kUlp;

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

// Of the results that are wanted; the others have to be as they were.
void expect_equals_reference(StreamMixCase& c, const std::string& what) {
  const StreamMixShape& s = c.shape;
  const int64_t cols = c.cols;
  Row d_matrix = widen(c.d_matrix), d_weights = widen(c.d_weights), d_z;
  Row matrix_bound;
  for (const double value : d_matrix) matrix_bound.push_back(std::abs(value));
  std::vector<Row> outputs(kMaxMixedStreams), d_streams(kMaxMixedStreams);
  reference::MixedRowGradients g;
  g.gain = widen(c.d_gain);
  g.bias = widen(c.d_bias);
  for (int64_t row = 0; row < kStreamMixRows; ++row) {
    const int64_t own = s.each_row ? row : 0;
    reference::MixedRow mix;
    for (int64_t j = 0; j < s.outputs; ++j) mix.matrix.push_back(mix_row_at(c.matrix, own * s.outputs + j, s.streams));
    if (s.branch) mix.branch_weights = mix_row_at(c.weights, own, s.outputs);
    const bool layer = s.norm == MixNormed::layer;
    mix.norm = {s.norm != MixNormed::no, layer, static_cast<double>(1e-5F), widen(c.gain),
                layer ? widen(c.bias) : Row(static_cast<size_t>(cols), 0.0)};
    const std::vector<Row> streams = rows_at(c.streams, s.streams, row, cols);
    std::vector<Row> through = rows_at(c.through, s.streams, row, cols);
    if (!s.through) through.assign(through.size(), Row(static_cast<size_t>(cols), 0.0));
    reference::NormState state;
    const Row z = mix_row_at(c.z, row, cols);
    const auto out = reference::mix_forward(mix, streams, z, state);
    auto d_outputs = rows_at(c.d_outputs, s.outputs, row, cols);
    for (size_t j = 0; j < d_outputs.size(); ++j) {
      if (!c.gives(j)) d_outputs[j].assign(static_cast<size_t>(cols), 0.0);
    }
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
  c.forward(1, kStreamMixRows);
  c.backward(0, 2);
  c.backward(2, kStreamMixRows);
  for (int j = 0; j < s.outputs; ++j) {
    expect_close(c.outputs[static_cast<size_t>(j)], outputs[static_cast<size_t>(j)], kStreamMixTolerance,
                 what + " out " + std::to_string(j));
  }
  const auto expect = [&](const std::vector<float>& actual, const Row& expected, bool wanted, const std::string& name) {
    if (wanted) return expect_close(actual, expected, kStreamMixTolerance, what + " " + name);
    EXPECT_TRUE(same_bits(actual, std::vector<float>(actual.size(), kUntouched))) << what << " " << name;
  };
  for (size_t i = 0; i < static_cast<size_t>(s.streams); ++i) {
    expect(c.d_streams[i], d_streams[i], c.wants_stream(i), "ds " + std::to_string(i));
  }
  if (s.branch) expect(c.d_z, d_z, (c.wanted & kBranch) != 0, "dz");
  // dM and db are sums of terms of either sign: their roundings are those of the terms.
  for (double& bound : matrix_bound) bound *= kStreamMixTolerance;
  if ((c.wanted & kMatrix) != 0) expect_within(c.d_matrix, d_matrix, matrix_bound, what + " dM");
  if (s.branch && (c.wanted & kWeights) != 0) expect_close(c.d_weights, d_weights, kStreamMixTolerance, what + " db");
  if (s.norm == MixNormed::no || (c.wanted & kNorm) == 0) return;
  expect_close(c.d_gain, g.gain, kStreamMixTolerance, what + " dgain");
  expect_close(c.d_bias, g.bias, kStreamMixTolerance, what + " dbias");
}

TEST_P(StreamMixes, ForwardAndBackwardEqualTheReference) {
  for (const StreamMixShape& shape : mix_shapes()) {
    for (const int64_t cols : {1, 31, 32, 33, 257}) {
      // Of one number a norm keeps the sign: its gradient is the difference of almost equal numbers.
      if (cols == 1 && shape.norm != MixNormed::no) continue;
      StreamMixCase c(shape, cols);
      expect_equals_reference(c, shape.text(cols));
    }
  }
}

// A gradient that did not come is a null pointer, as is one that is not wanted.
TEST_P(StreamMixes, AnySetOfGradientsEqualsTheReference) {
  for (const StreamMixShape& shape : mix_shapes()) {
    for (int given = 0; given < 1 << shape.outputs; ++given) {
      for (int wanted = 0; wanted <= kAllWanted; wanted += given % 3 + 1) {
        StreamMixCase c(shape, 19);
        c.given = given;
        c.wanted = (wanted & kStreams) != 0 ? wanted : wanted | kOddStreams;
        expect_equals_reference(
            c, shape.text(19) + " given " + std::to_string(given) + " wanted " + std::to_string(wanted));
        if (HasFailure()) return;
      }
    }
  }
}

TEST_P(StreamMixes, RowByRowGivesTheSameBits) {
  for (const StreamMixShape& shape : mix_shapes()) {
    for (const int64_t cols : {1, 7, 33, 100}) {
      StreamMixCase whole(shape, cols, 7), split(shape, cols, 7);
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
  for (const StreamMixShape& shape : mix_shapes()) {
    for (const int64_t cols : {1, 31, 32, 33}) {
      StreamMixCase c(shape, cols);
      c.forward(1, 2);
      c.backward(1, 2);
      std::vector<const std::vector<float>*> written;
      for (int j = 0; j < shape.outputs; ++j) written.push_back(&c.outputs[static_cast<size_t>(j)]);
      for (int i = 0; i < shape.streams; ++i) written.push_back(&c.d_streams[static_cast<size_t>(i)]);
      if (shape.branch) written.push_back(&c.d_z);
      for (const auto* const values : written) {
        for (int64_t i = 0; i < kStreamMixRows * cols; ++i) {
          const bool inside = i >= cols && i < 2 * cols;
          ASSERT_EQ((*values)[static_cast<size_t>(i)] != kUntouched, inside) << shape.text(cols) << " at " << i;
        }
      }
    }
  }
}

TEST_P(StreamMixes, NanStaysInItsRow) {
  const StreamMixShape shape{4, 4, true, true, false, MixNormed::no};
  for (const int64_t cols : {1, 17, 100}) {
    StreamMixCase clean(shape, cols), broken(shape, cols);
    broken.streams[2][static_cast<size_t>(2 * cols - 1)] = std::numeric_limits<float>::quiet_NaN();
    for (StreamMixCase* c : {&clean, &broken}) {
      c->forward(0, kStreamMixRows);
      c->backward(0, kStreamMixRows);
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

TEST_P(StreamMixes, ABfloat16InputIsTheSameRounded) {
  for (const StreamMixShape& shape : mix_shapes()) {
    if (shape.outputs != 1 || shape.branch) continue;
    for (const int64_t cols : {1, 31, 33, 257}) {
      StreamMixCase of_floats(shape, cols), c(shape, cols);
      c.half = true;
      c.half_output.resize(c.outputs[0].size());
      c.half_d_output = rounded(c.d_outputs[0]);
      of_floats.d_outputs[0] = floats_of(c.half_d_output);
      for (StreamMixCase* each : {&of_floats, &c}) {
        each->forward(0, kStreamMixRows);
        each->backward(0, kStreamMixRows);
      }
      expect_rounded(c.half_output, of_floats.outputs[0], shape.text(cols));
      c.outputs[0] = of_floats.outputs[0];
      for (size_t i = 0; i < c.results().size(); ++i) {
        EXPECT_TRUE(same_bits(*c.results()[i], *of_floats.results()[i])) << shape.text(cols) << " result " << i;
      }
    }
  }
}

}  // namespace
}  // namespace siamese::kernels
