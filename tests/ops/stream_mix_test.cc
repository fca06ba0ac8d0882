#include "siamese/ops/stream_mix.h"

#include "tests/support/errors.h"
#include "tests/support/tensors.h"

#include <ATen/Parallel.h>

#include "siamese/kernels/simd.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/one_thread.h"

namespace siamese::ops {
namespace stream_mix_test {

using testing::leaf;
using testing::randn;

constexpr double kTolerance = 5e-6;  // float against double: sums of five terms, a norm, dot products over a row

struct Case {
  int64_t streams;
  bool each_row;
  bool norm, layer;  // of the read
};

// A read and the write that follows it, as a junction uses them, and its differentiable tensors.
struct Example {
  Example(const Case& c, int64_t rows, int64_t cols, at::ScalarType dtype) {
    uint64_t seed = 20;
    const auto tensor = [&](std::vector<int64_t> shape, double scale, double center) {
      return leaves.emplace_back(leaf((randn(shape, ++seed) * scale + center).to(at::kFloat).to(dtype)));
    };
    const auto coefficients = [&](std::vector<int64_t> shape) {
      if (c.each_row) shape.insert(shape.begin(), {2, rows});
      return tensor(shape, 0.5, 0.3);
    };
    for (int64_t i = 0; i < c.streams; ++i) streams.push_back(tensor({2, rows, cols}, 1, 0.2));
    branch = tensor({2, rows, cols}, 1, 0);
    input = coefficients({c.streams});
    matrix = coefficients({c.streams, c.streams});
    output = coefficients({c.streams});
    if (!c.norm) return;
    norm = {true, c.layer, tensor({cols}, 0.5, 1), c.layer ? tensor({cols}, 0.5, 0) : at::Tensor(), 1e-5};
  }

  // Everything that is made, weighted differently, as one differentiable tensor.
  at::Tensor fused() const {
    const StreamRead read = stream_read(streams, input, norm);
    return joined(read, stream_mix(read.streams, matrix, branch, output));
  }
  at::Tensor plain() const {
    const StreamRead read = plain::stream_read(streams, input, norm);
    return joined(read, plain::stream_mix(read.streams, matrix, branch, output));
  }
  static at::Tensor joined(const StreamRead& read, const std::vector<at::Tensor>& written) {
    std::vector<at::Tensor> parts = {read.input};
    for (size_t j = 0; j < written.size(); ++j) parts.push_back(static_cast<double>(j + 2) * written[j]);
    parts.push_back(0.5 * read.streams.back());
    return at::cat(parts, 0);
  }

  std::vector<at::Tensor> leaves, streams;
  at::Tensor branch, input, matrix, output;
  NormStep norm;
};

std::string text(const Case& c, int64_t rows, int64_t cols) {
  return std::to_string(c.streams) + " streams" + (c.each_row ? " each row" : " for all") +
         (!c.norm   ? ""
          : c.layer ? " layer "
                    : " rms ") +
         std::to_string(rows) + " x " + std::to_string(cols);
}

void expect_equal(const Case& c, int64_t rows, int64_t cols) {
  const std::string what = text(c, rows, cols);
  const Example exact(c, rows, cols, at::kDouble);
  const Example single(c, rows, cols, at::kFloat);
  const at::Tensor wanted = exact.plain();
  const ModeGuard guard(Mode::fused);
  const at::Tensor got = single.fused();
  testing::expect_relative(got, wanted, kTolerance, what);
  const auto got_gradients = testing::gradients(got, single.leaves);
  const auto wanted_gradients = testing::gradients(wanted, exact.leaves);
  // The gradient of the weight of a single stream (leaf 2) is one number, of many terms and no larger one beside it; a
  // norm takes the weight out again, and it is 0.
  const double most = testing::largest(exact.streams[0]) * testing::largest(randn(wanted.sizes(), 4242));
  for (size_t i = 0; i < got_gradients.size(); ++i) {
    testing::expect_relative(got_gradients[i], wanted_gradients[i], kTolerance, what + " gradient " + std::to_string(i),
                             c.streams == 1 && i == 2 ? most : 0);
  }
}

TEST(StreamMix, FusedEqualsPlainForwardAndGradientAtEverySimdLevel) {
  const int before = at::get_num_threads();
  at::set_num_threads(1);  // too small to share
  for (const int64_t target : kernels::simd_targets()) {
    kernels::force_simd_target(target);
    for (int64_t streams = 1; streams <= 6; ++streams) {  // beyond four: the plain expression
      for (const bool each_row : {true, false}) {
        for (const int64_t cols : {1, 31, 32, 33, 257}) {
          if (target != kernels::simd_targets().front() && cols != 33) continue;  // the rest: tests/kernels
          expect_equal({streams, each_row, false, false}, 70, cols);
          if (cols == 1) continue;  // of one number a norm keeps the sign: its gradient is all rounding
          expect_equal({streams, each_row, true, false}, 70, cols);
          expect_equal({streams, each_row, true, true}, 1, cols);
        }
      }
    }
  }
  kernels::force_simd_target(0);
  at::set_num_threads(before);
}

TEST(StreamMix, OneTensorMayBeEveryStreamAndStridedOnesAreTaken) {
  const ModeGuard guard(Mode::fused);
  const at::Tensor x = leaf(randn({3, 33, 5}, 1, at::kFloat));
  const at::Tensor exact = leaf(x.detach().to(at::kDouble));
  const at::Tensor m = leaf(randn({2, 2}, 2, at::kFloat));
  const auto run = [&](const at::Tensor& from, const at::Tensor& matrix, bool fused) {
    const at::Tensor s = from.transpose(1, 2);
    const at::Tensor b = matrix[0];
    return at::cat(fused ? stream_mix({s, s}, matrix.t(), s, b) : plain::stream_mix({s, s}, matrix.t(), s, b), 0);
  };
  const at::Tensor exact_m = leaf(m.detach().to(at::kDouble));
  const at::Tensor got = run(x, m, true);
  const at::Tensor wanted = run(exact, exact_m, false);
  testing::expect_relative(got, wanted, kTolerance, "out");
  const auto got_gradients = testing::gradients(got, {x, m});
  const auto wanted_gradients = testing::gradients(wanted, {exact, exact_m});
  testing::expect_relative(got_gradients[0], wanted_gradients[0], kTolerance, "ds");
  testing::expect_relative(got_gradients[1], wanted_gradients[1], kTolerance, "dM");
}

TEST(StreamMix, OutputsThatNobodyUsesHaveNoGradient) {
  const ModeGuard guard(Mode::fused);
  for (const int which : {0, 1, 2}) {
    const Case c{3, true, true, true};
    const Example exact(c, 5, 33, at::kDouble);
    const Example single(c, 5, 33, at::kFloat);
    const auto pick = [&](const Example& e, bool fused) {
      const StreamRead read =
          fused ? stream_read(e.streams, e.input, e.norm) : plain::stream_read(e.streams, e.input, e.norm);
      if (which == 0) return read.input;
      return (fused ? stream_mix(read.streams, e.matrix, e.branch, e.output)
                    : plain::stream_mix(read.streams, e.matrix, e.branch, e.output))[static_cast<size_t>(which)];
    };
    const auto wanted = testing::gradients(pick(exact, false), exact.leaves);
    const auto got = testing::gradients(pick(single, true), single.leaves);
    for (size_t i = 0; i < got.size(); ++i) {
      const at::Tensor zero = at::zeros_like(exact.leaves[i]);
      testing::expect_relative(got[i].defined() ? got[i] : zero, wanted[i].defined() ? wanted[i] : zero, kTolerance,
                               std::to_string(which) + " gradient " + std::to_string(i));
    }
  }
}

TEST(StreamMix, SameBitsAtAnyThreadCount) {
  const ModeGuard guard(Mode::fused);
  const int before = at::get_num_threads();
  for (const bool each_row : {true, false}) {
    std::vector<std::vector<at::Tensor>> results;
    for (const int threads : {1, 2, 3, 5}) {
      at::set_num_threads(threads);
      const Example e({4, each_row, true, true}, 777, 65, at::kFloat);
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
  }
  at::set_num_threads(before);
}

TEST(StreamRead, ABiasBesideAnRmsNormIsRefused) {
  const at::Tensor stream = at::ones({2, 5});
  const NormStep norm{true, /*layer=*/false, {}, at::ones({5}), 1e-5};
  for (const size_t streams : {2, 6}) {  // six have no kernel
    testing::expect_error<UsageError>(
        [&] { stream_read(Tensors(streams, stream), at::ones({static_cast<int64_t>(streams)}), norm); },
        {"bias: expected no bias beside an RMSNorm"});
  }
}

}  // namespace stream_mix_test
}  // namespace siamese::ops
