#include "siamese/ops/stream_attend.h"

#include "tests/support/errors.h"
#include "tests/support/tensors.h"

#include <ATen/Parallel.h>

#include "siamese/kernels/simd.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/one_thread.h"

namespace siamese::ops {
namespace stream_attend_test {

using testing::leaf;
using testing::randn;

constexpr double kTolerance = 5e-6;  // float against double: dot products over a row, exponentials, a norm

struct Case {
  int64_t streams;
  bool branch;
  bool norm, layer;
};

// As the plain one takes it.
StreamAttended fused_attend(const std::vector<at::Tensor>& streams, const at::Tensor& branch, const at::Tensor& query,
                            double eps, const NormStep& norm) {
  return stream_attend(streams, branch, query, eps, norm);
}

// Two reads, one after the other, as a scheme uses them, and their differentiable tensors.
struct Example {
  Example(const Case& c, int64_t rows, int64_t cols, at::ScalarType dtype) {
    uint64_t seed = 20;
    const auto tensor = [&](std::vector<int64_t> shape, double scale, double center) {
      return leaves.emplace_back(leaf((randn(shape, ++seed) * scale + center).to(at::kFloat).to(dtype)));
    };
    for (int64_t j = 0; j < c.streams; ++j) streams.push_back(tensor({2, rows, cols}, 1, 0.2));
    if (c.branch) branch = tensor({2, rows, cols}, 1, 0);
    query = tensor({cols}, 0.3, 0);
    other_query = tensor({cols}, 0.3, 0);
    if (!c.norm) return;
    norm = {true, c.layer, tensor({cols}, 0.5, 1), c.layer ? tensor({cols}, 0.5, 0) : at::Tensor(), 1e-5};
  }

  // Everything that is made, weighted differently, as one differentiable tensor.
  template <class Op>
  at::Tensor run(Op* op) const {
    const StreamAttended first = op(streams, branch, query, 1e-5, norm);
    const StreamAttended second = op(first.streams, {}, other_query, 1e-5, norm);
    return at::cat({first.input, 2 * second.input, 0.5 * second.streams.back(), 0.25 * first.streams[0]}, 0);
  }
  at::Tensor fused() const { return run(&fused_attend); }
  at::Tensor plain() const { return run(&ops::plain::stream_attend); }

  std::vector<at::Tensor> leaves, streams;
  at::Tensor branch, query, other_query;
  NormStep norm;
};

void expect_equal(const Case& c, int64_t rows, int64_t cols) {
  const std::string what = std::to_string(c.streams) + (c.branch ? " streams and a branch" : " streams") +
                           (c.norm ? (c.layer ? " layer " : " rms ") : " ") + std::to_string(rows) + " x " +
                           std::to_string(cols);
  const Example exact(c, rows, cols, at::kDouble);
  const Example single(c, rows, cols, at::kFloat);
  const at::Tensor wanted = exact.plain();
  const ModeGuard guard(Mode::fused);
  const at::Tensor got = single.fused();
  testing::expect_relative(got, wanted, kTolerance, what);
  const auto got_gradients = testing::gradients(got, single.leaves);
  const auto wanted_gradients = testing::gradients(wanted, exact.leaves);
  double terms = 0;  // the gradient of a query before one source is 0, a difference of such
  for (const auto& gradient : wanted_gradients) terms = std::max(terms, testing::largest(gradient));
  for (size_t i = 0; i < got_gradients.size(); ++i) {
    testing::expect_relative(got_gradients[i], wanted_gradients[i], kTolerance, what + " gradient " + std::to_string(i),
                             terms);
  }
}

TEST(StreamAttend, FusedEqualsPlainForwardAndGradientAtEverySimdLevel) {
  const int before = at::get_num_threads();
  at::set_num_threads(1);  // too small to share
  for (const int64_t target : kernels::simd_targets()) {
    kernels::force_simd_target(target);
    for (const int64_t streams : {1, 2, 5, 19}) {
      for (const bool branch : {false, true}) {
        for (const int64_t cols : {1, 31, 32, 33, 257}) {
          if (target != kernels::simd_targets().front() && cols != 33) continue;  // the rest: tests/kernels
          expect_equal({streams, branch, false, false}, 70, cols);
          if (cols == 1) continue;  // of one number a norm keeps the sign: its gradient is all rounding
          expect_equal({streams, branch, true, false}, 70, cols);
          expect_equal({streams, branch, true, true}, 1, cols);
        }
      }
    }
  }
  kernels::force_simd_target(0);
  at::set_num_threads(before);
}

// Written out by hand: two sources of two numbers.
TEST(StreamAttend, IsASoftmaxOfNormalisedKeysOverRawValues) {
  const at::Tensor a = at::tensor({3.0, 4.0}), b = at::tensor({0.0, -2.0}), q = at::tensor({0.5, 0.25});
  const double s_a = (0.5 * 3 + 0.25 * 4) / std::sqrt(12.5 + 0.1);
  const double s_b = (0.25 * -2) / std::sqrt(2 + 0.1);
  const double weight = std::exp(s_a) / (std::exp(s_a) + std::exp(s_b));
  const at::Tensor wanted = weight * a + (1 - weight) * b;
  for (const at::ScalarType dtype : {at::kDouble, at::kFloat}) {
    const auto made = stream_attend({a.to(dtype), b.to(dtype)}, {}, q.to(dtype), 0.1, {});
    testing::expect_relative(made.input, wanted, dtype == at::kFloat ? 1e-6 : 1e-14, "h");
  }
}

// Whatever the query; and a query of 0 is the mean.
TEST(StreamAttend, ASingleSourceReturnsItself) {
  const at::Tensor v = randn({3, 33}, 1, at::kFloat);
  testing::expect_same_bits(stream_attend({v}, {}, randn({33}, 2, at::kFloat), 1e-5, {}).input, v, "one source");
  const at::Tensor u = randn({3, 33}, 3, at::kFloat);
  testing::expect_relative(stream_attend({v, u}, {}, at::zeros({33}), 1e-5, {}).input, 0.5 * (v + u), 1e-6, "mean");
}

TEST(StreamAttend, OutputsThatNobodyUsesHaveNoGradient) {
  const ModeGuard guard(Mode::fused);
  for (const size_t which : {0U, 1U, 3U}) {
    const Case c{3, true, true, true};
    const Example exact(c, 5, 33, at::kDouble);
    const Example single(c, 5, 33, at::kFloat);
    const auto pick = [&](const Example& e, auto* op) {
      const StreamAttended made = op(e.streams, e.branch, e.query, 1e-5, e.norm);
      return which == 0 ? made.input : made.streams[which - 1];
    };
    const auto wanted = testing::gradients(pick(exact, &plain::stream_attend), exact.leaves);
    const auto got = testing::gradients(pick(single, &fused_attend), single.leaves);
    for (size_t i = 0; i < got.size(); ++i) {
      const at::Tensor zero = at::zeros_like(exact.leaves[i]);
      testing::expect_relative(got[i].defined() ? got[i] : zero, wanted[i].defined() ? wanted[i] : zero, kTolerance,
                               std::to_string(which) + " gradient " + std::to_string(i));
    }
  }
}

TEST(StreamAttend, OneTensorMayBeEveryStreamAndStridedOnesAreTaken) {
  const ModeGuard guard(Mode::fused);
  const at::Tensor x = leaf(randn({3, 33, 5}, 1, at::kFloat));
  const at::Tensor exact = leaf(x.detach().to(at::kDouble));
  const at::Tensor q = randn({33}, 2, at::kFloat);
  const auto run = [&](const at::Tensor& from, auto* op) {
    const at::Tensor s = from.transpose(1, 2);
    return op({s, s, s}, s, q.to(from.scalar_type()), 1e-5, {}).input;
  };
  const at::Tensor got = run(x, &fused_attend);
  const at::Tensor wanted = run(exact, &plain::stream_attend);
  testing::expect_relative(got, wanted, kTolerance, "h");
  testing::expect_relative(testing::gradients(got, {x})[0], testing::gradients(wanted, {exact})[0], kTolerance, "dx");
}

TEST(StreamAttend, SameBitsAtAnyThreadCount) {
  const ModeGuard guard(Mode::fused);
  const int before = at::get_num_threads();
  std::vector<std::vector<at::Tensor>> results;
  for (const int threads : {1, 2, 3, 5}) {
    at::set_num_threads(threads);
    const Example e({6, true, true, true}, 777, 65, at::kFloat);
    const at::Tensor y = e.fused();
    auto all = testing::gradients(y, e.leaves);
    all.push_back(y);
    results.push_back(all);
  }
  for (size_t run = 1; run < results.size(); ++run) {
    for (size_t i = 0; i < results[0].size(); ++i) {
      testing::expect_same_bits(results[run][i], results[0][i], "threads " + std::to_string(i));
    }
  }
  at::set_num_threads(before);
}

// Streams in bfloat16, beside a query of either type: rounded once, from floats.
TEST(StreamAttend, BfloatStreamsAreAttendedInFloat) {
  std::vector<at::Tensor> streams, wide;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    streams.push_back(1e4 * randn({4, 33}, seed, at::kBFloat16));
    wide.push_back(streams.back().to(at::kDouble));
  }
  const at::Tensor q = randn({33}, 9, at::kBFloat16);
  const at::Tensor wanted = plain::stream_attend(wide, {}, q.to(at::kDouble), 1e-5, {}).input;
  for (const at::Tensor& query : {q, q.to(at::kFloat)}) {
    const at::Tensor got = stream_attend(streams, {}, query, 1e-5, {}).input;
    EXPECT_EQ(got.scalar_type(), at::kBFloat16);
    testing::expect_relative(got, wanted, 0x1p-8, "h");
  }
}

TEST(StreamAttend, MistakesAreNamed) {
  const at::Tensor v = at::ones({2, 5});
  using testing::expect_error;
  expect_error<UsageError>(
      [&] {
        stream_attend({v, at::ones({2, 4})}, {}, at::ones({5}), 1e-5, {});
      },
      {"streams", "[2, 5]", "[2, 4]"});
  expect_error<UsageError>([&] { stream_attend({v}, at::ones({5}), at::ones({5}), 1e-5, {}); },
                           {"branch", "[2, 5]", "[5]"});
  expect_error<UsageError>([&] { stream_attend({v}, {}, at::ones({4}), 1e-5, {}); }, {"query", "[5]", "[4]"});
  expect_error<UsageError>(
      [&] {
        stream_attend({v}, {}, at::ones({5}), 1e-5, {true, false, {}, at::ones({5}), 1e-5});
      },
      {"no bias beside an RMSNorm"});
  expect_error<UsageError>(
      [&] {
        stream_attend({at::ones({2, 0})}, {}, at::ones({0}), 1e-5, {});
      },
      {"at least one number"});
  expect_error<UsageError>([&] { stream_attend({}, {}, at::ones({5}), 1e-5, {}); }, {"streams"});
}

}  // namespace stream_attend_test
}  // namespace siamese::ops
