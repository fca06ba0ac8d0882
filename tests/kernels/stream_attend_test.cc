#include "siamese/kernels/stream_attend.h"

#include <limits>

#include "tests/kernels/kernel_testing.h"

#include "siamese/kernels/reference/stream_attend.h"

namespace siamese::kernels {
namespace {

SIAMESE_AT_EVERY_SIMD_LEVEL(StreamAttends);

using reference::Row;

constexpr int64_t kStreamAttendRows = 3;
constexpr float kKeyEps = 1e-3F;  // large enough to see
enum class Normed { no, rms, layer };
enum class Through { none, all, odd };

struct StreamAttendShape {
  int64_t streams;
  bool branch;
  Through through;
  Normed norm;

  std::string text(int64_t cols) const {
    return std::to_string(streams) + " streams" + (branch ? " branch" : "") + " through " +
           std::to_string(static_cast<int>(through)) + " norm " + std::to_string(static_cast<int>(norm)) + " cols " +
           std::to_string(cols);
  }
};

std::vector<StreamAttendShape> shapes() {
  std::vector<StreamAttendShape> all;
  for (const int64_t streams : {1, 2, 3, 9, 17}) {
    for (const Normed norm : {Normed::no, Normed::rms, Normed::layer}) {
      all.push_back({streams, false, Through::all, norm});
      all.push_back({streams, true, Through::odd, norm});
      all.push_back({streams, streams % 2 == 0, Through::none, norm});
    }
  }
  return all;
}

// One problem and its float result. Backward's sums start from random numbers: they are added to.
struct StreamAttendCase {
  StreamAttendCase(const StreamAttendShape& s, int64_t width, int64_t row_count = kStreamAttendRows)
      : shape(s), rows(row_count), cols(width) {
    const int64_t size = rows * cols;
    query = random_floats(cols, "query", 0, 1.5 / std::sqrt(static_cast<double>(cols)));
    z = random_floats(size, "z");
    d_input = random_floats(size, "d");
    gain = random_floats(cols, "gain", 1, 0.5);
    bias = random_floats(cols, "bias", 0, 0.5);
    for (int64_t j = 0; j < s.streams; ++j) {
      const std::string name = std::to_string(j);
      streams.push_back(random_floats(size, "v" + name, 0.2, 1 + 0.3 * static_cast<double>(j % 4)));
      through.push_back(random_floats(size, "t" + name));
      d_streams.emplace_back(size, kUntouched);
    }
    sum.assign(static_cast<size_t>(size), kUntouched);
    input = sum;
    d_query = random_floats(cols, "d_query");
    d_gain = random_floats(cols, "d_gain");
    d_bias = random_floats(cols, "d_bias");
    attend.cols = cols;
    attend.streams = s.streams;
    attend.query = query.data();
    attend.eps = kKeyEps;
    attend.layer = s.norm == Normed::layer;
    if (s.norm != Normed::no) {
      attend.norm.present = true;
      attend.norm.eps = 1e-5F;
      attend.norm.gain = gain.data();
      attend.norm.bias = attend.layer ? bias.data() : nullptr;
    }
    statistics.assign(static_cast<size_t>(rows * attend.statistics_cols()), kUntouched);
    attend.statistics = statistics.data();
    scratch.resize(static_cast<size_t>(3 * cols + 2 * s.streams));
    dots.resize(static_cast<size_t>(s.streams));
  }

  bool has_through(size_t j) const {
    return shape.through == Through::all || (shape.through == Through::odd && j % 2 == 1);
  }
  const std::vector<float>& used(size_t j) const {  // V_j, as the pass uses it
    return shape.branch && j + 1 == streams.size() ? sum : streams[j];
  }

  void forward(int64_t begin, int64_t end) {
    std::vector<const float*> sources;
    for (size_t j = 0; j < streams.size(); ++j) sources.push_back(used(j).data());
    const bool b = shape.branch;
    stream_attend_forward(
        attend,
        {sources.data(), b ? streams.back().data() : nullptr, b ? z.data() : nullptr, b ? sum.data() : nullptr,
         half ? nullptr : input.data(), half ? half_input.data() : nullptr, scratch.data()},
        begin, end);
  }

  void backward(int64_t begin, int64_t end) {
    std::vector<const float*> sources, came;
    std::vector<float*> wanted;
    for (size_t j = 0; j < streams.size(); ++j) {
      sources.push_back(used(j).data());
      came.push_back(has_through(j) ? through[j].data() : nullptr);
      wanted.push_back(want_streams && (j != 1 || want_second) ? d_streams[j].data() : nullptr);
    }
    StreamAttendGradients g;
    g.streams = sources.data();
    g.d_input = gives_input && !half ? d_input.data() : nullptr;
    g.half_d_input = half ? half_d_input.data() : nullptr;
    if (shape.through != Through::none) g.through = came.data();
    if (want_streams) g.d_streams = wanted.data();
    if (want_query) g.d_query = d_query.data();
    if (want_norm) g.norm = {d_gain.data(), d_bias.data()};
    g.scratch = scratch.data();
    g.dots = dots.data();
    stream_attend_backward(attend, g, begin, end);
  }

  std::vector<const std::vector<float>*> results() const {
    std::vector<const std::vector<float>*> all = {&input, &sum, &statistics, &d_query, &d_gain, &d_bias};
    for (const auto& gradient : d_streams) all.push_back(&gradient);
    return all;
  }

  StreamAttendShape shape;
  int64_t rows, cols;
  bool gives_input = true, want_streams = true, want_second = true, want_query = true, want_norm = true;
  bool half = false;  // the input and its gradient are bfloat16
  Halves half_input, half_d_input;
  std::vector<float> query, z, d_input, gain, bias, sum, input, d_query, d_gain, d_bias, statistics, scratch;
  std::vector<double> dots;
  std::vector<std::vector<float>> streams, through, d_streams;
  StreamAttend attend;
};

Row row_at(const std::vector<float>& values, int64_t row, int64_t cols) {
  return {values.begin() + row * cols, values.begin() + (row + 1) * cols};
}

// Float rounding of the weights, the weighted sum and a norm, relative to the largest value of the tensor.
constexpr double kStreamAttendTolerance = 64 * kUlp;

struct Expected {
  Row sum, input, statistics;
  std::vector<Row> d_streams;
  reference::AttendGradients g;
};

void append(Row& to, const Row& from) { to.insert(to.end(), from.begin(), from.end()); }

Expected reference_of(const StreamAttendCase& c) {
  const auto width = static_cast<size_t>(c.cols);
  const bool layer = c.shape.norm == Normed::layer;
  const reference::AttendedRow attend{widen(c.query),
                                      static_cast<double>(kKeyEps),
                                      {c.shape.norm != Normed::no, layer, static_cast<double>(1e-5F), widen(c.gain),
                                       layer ? widen(c.bias) : Row(width, 0.0)}};
  Expected made;
  made.d_streams.resize(c.streams.size());
  made.g.query = widen(c.d_query);
  made.g.gain = widen(c.d_gain);
  made.g.bias = widen(c.d_bias);
  for (int64_t row = 0; row < c.rows; ++row) {
    std::vector<Row> v, through;
    for (size_t j = 0; j < c.streams.size(); ++j) {
      v.push_back(row_at(c.streams[j], row, c.cols));
      through.push_back(c.has_through(j) ? row_at(c.through[j], row, c.cols) : Row(width, 0.0));
    }
    if (c.shape.branch) {
      const Row z = row_at(c.z, row, c.cols);
      for (size_t i = 0; i < width; ++i) v.back()[i] = static_cast<double>(static_cast<float>(v.back()[i] + z[i]));
    }
    reference::AttendState state;
    append(made.sum, v.back());
    append(made.input, reference::attend_forward(attend, v, state));
    append(made.statistics, state.scores);
    append(made.statistics, state.scales);
    const Row d_input = c.gives_input ? row_at(c.d_input, row, c.cols) : Row(width, 0.0);
    reference::attend_backward(attend, state, v, d_input, through, made.g);
    for (size_t j = 0; j < v.size(); ++j) append(made.d_streams[j], made.g.streams[j]);
  }
  return made;
}

// Of the results that are wanted; the others have to be as they were.
void expect_equals_reference(StreamAttendCase& c, const std::string& what) {
  const Expected expected = reference_of(c);
  const std::vector<float> query_before = c.d_query, gain_before = c.d_gain;
  c.forward(0, kStreamAttendRows);
  c.backward(0, kStreamAttendRows);
  expect_close(c.input, expected.input, kStreamAttendTolerance, what + " input");
  EXPECT_TRUE(!c.shape.branch || widen(c.sum) == expected.sum) << what;
  std::vector<float> statistics;  // of the streams
  const int64_t stride = c.attend.statistics_cols();
  for (int64_t row = 0; row < kStreamAttendRows; ++row) {
    const auto begin = c.statistics.begin() + row * stride;
    statistics.insert(statistics.end(), begin, begin + 2 * c.shape.streams);
  }
  expect_close(statistics, expected.statistics, kStreamAttendTolerance, what + " statistics");
  const std::vector<float> untouched(c.input.size(), kUntouched);
  for (size_t j = 0; j < c.streams.size(); ++j) {
    const std::string name = what + " dV " + std::to_string(j);
    if (c.want_streams && (j != 1 || c.want_second)) {
      // Relative to its terms, of which the gradient D behind a norm may be a small difference.
      expect_close(c.d_streams[j], expected.d_streams[j], kStreamAttendTolerance, name, 1);
    } else {
      EXPECT_TRUE(same_bits(c.d_streams[j], untouched)) << name;
    }
  }
  if (c.want_query) expect_close(c.d_query, expected.g.query, kStreamAttendTolerance, what + " dq", 1);
  EXPECT_TRUE(c.want_query || same_bits(c.d_query, query_before)) << what;
  EXPECT_TRUE(c.want_norm || same_bits(c.d_gain, gain_before)) << what;
  if (c.shape.norm == Normed::no || !c.want_norm || !c.gives_input) return;
  expect_close(c.d_gain, expected.g.gain, kStreamAttendTolerance, what + " dgain");
  if (c.attend.layer) expect_close(c.d_bias, expected.g.bias, kStreamAttendTolerance, what + " dbias");
}

TEST_P(StreamAttends, ForwardAndBackwardEqualTheReference) {
  for (const StreamAttendShape& shape : shapes()) {
    for (const int64_t cols : {1, 31, 32, 33, 257}) {
      // Of one number a norm keeps the sign: its gradient is the difference of almost equal numbers.
      if (cols == 1 && shape.norm != Normed::no) continue;
      StreamAttendCase c(shape, cols);
      expect_equals_reference(c, shape.text(cols));
    }
  }
}

// A gradient that did not come is a null pointer, as is one that is not wanted.
TEST_P(StreamAttends, AnySetOfGradientsEqualsTheReference) {
  for (const StreamAttendShape& shape : shapes()) {
    for (int bits = 0; bits < 32; ++bits) {
      StreamAttendCase c(shape, 19);
      c.gives_input = (bits & 1) != 0;
      c.want_streams = (bits & 2) != 0;
      c.want_second = (bits & 4) != 0;
      c.want_query = (bits & 8) != 0;
      c.want_norm = (bits & 16) != 0;
      expect_equals_reference(c, shape.text(19) + " wanted " + std::to_string(bits));
      if (HasFailure()) return;
    }
  }
}

TEST_P(StreamAttends, RowByRowGivesTheSameBits) {
  for (const StreamAttendShape& shape : shapes()) {
    for (const int64_t cols : {1, 7, 33, 100}) {
      StreamAttendCase whole(shape, cols, 7), split(shape, cols, 7);
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

TEST_P(StreamAttends, LeavesOtherRowsAlone) {
  for (const StreamAttendShape& shape : shapes()) {
    for (const int64_t cols : {1, 31, 32, 33}) {
      StreamAttendCase c(shape, cols);
      c.forward(1, 2);
      c.backward(1, 2);
      std::vector<const std::vector<float>*> written = {&c.input};
      if (shape.branch) written.push_back(&c.sum);
      for (const auto& gradient : c.d_streams) written.push_back(&gradient);
      for (const auto* const values : written) {
        for (int64_t i = 0; i < kStreamAttendRows * cols; ++i) {
          const bool inside = i >= cols && i < 2 * cols;
          ASSERT_EQ((*values)[static_cast<size_t>(i)] != kUntouched, inside) << shape.text(cols) << " at " << i;
        }
      }
      const int64_t stride = c.attend.statistics_cols();
      for (int64_t i = 0; i < kStreamAttendRows * stride; ++i) {
        ASSERT_EQ(c.statistics[static_cast<size_t>(i)] != kUntouched, i >= stride && i < 2 * stride);
      }
    }
  }
}

// Streams of 1e4, a query of 1e4: one stream has all the weight, and nothing is infinite.
TEST_P(StreamAttends, LargeNumbersStayFinite) {
  for (const float largest : {1e4F, 1e15F}) {
    StreamAttendCase c({3, true, Through::all, Normed::rms}, 33);
    for (auto& stream : c.streams) {
      for (float& value : stream) value *= largest;
    }
    for (float& value : c.query) value *= largest;
    c.forward(0, kStreamAttendRows);
    c.backward(0, kStreamAttendRows);
    for (const auto* const result : c.results()) {
      for (const float value : *result) ASSERT_TRUE(std::isfinite(value)) << largest;
    }
  }
}

TEST_P(StreamAttends, NanStaysInItsRow) {
  const StreamAttendShape shape{4, true, Through::all, Normed::rms};
  for (const int64_t cols : {1, 17, 100}) {
    for (const size_t broken_stream : {0U, 2U}) {
      StreamAttendCase clean(shape, cols), broken(shape, cols);
      broken.streams[broken_stream][static_cast<size_t>(2 * cols - 1)] = std::numeric_limits<float>::quiet_NaN();
      for (StreamAttendCase* c : {&clean, &broken}) {
        c->forward(0, kStreamAttendRows);
        c->backward(0, kStreamAttendRows);
      }
      EXPECT_TRUE(std::isnan(broken.input[static_cast<size_t>(2 * cols - 1)]));
      for (const int64_t row : {0, 2}) {
        EXPECT_TRUE(same_bits(&broken.input[row * cols], &clean.input[row * cols], cols));
        EXPECT_TRUE(same_bits(&broken.d_streams[1][row * cols], &clean.d_streams[1][row * cols], cols));
      }
    }
  }
}

TEST_P(StreamAttends, ABfloat16InputIsTheSameRounded) {
  for (const StreamAttendShape& shape : shapes()) {
    for (const int64_t cols : {1, 31, 33, 257}) {
      StreamAttendCase of_floats(shape, cols), c(shape, cols);
      c.half = true;
      c.half_input.resize(c.input.size());
      c.half_d_input = rounded(c.d_input);
      of_floats.d_input = floats_of(c.half_d_input);
      for (StreamAttendCase* each : {&of_floats, &c}) {
        each->forward(0, kStreamAttendRows);
        each->backward(0, kStreamAttendRows);
      }
      expect_rounded(c.half_input, of_floats.input, shape.text(cols));
      c.input = of_floats.input;
      for (size_t i = 0; i < c.results().size(); ++i) {
        EXPECT_TRUE(same_bits(*c.results()[i], *of_floats.results()[i])) << shape.text(cols) << " result " << i;
      }
    }
  }
}

}  // namespace
}  // namespace siamese::kernels
