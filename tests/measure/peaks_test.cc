#include "siamese/measure/peaks.h"

#include "tests/kernels/kernel_testing.h"

namespace siamese::measure {
namespace {

using kernels::kUntouched;
using kernels::simd_name;
using kernels::simd_targets;

SIAMESE_AT_EVERY_SIMD_LEVEL(Peaks);

TEST_P(Peaks, MultiplyAddsAreCountedAndConverge) {
  float sink = 0;
  const double once = multiply_add_rounds(1, &sink);
  EXPECT_GE(once, 24);  // one lane
  EXPECT_EQ(multiply_add_rounds(100, &sink), 100 * once);
  EXPECT_FLOAT_EQ(sink, static_cast<float>(once / 2 * 0.5));  // each value goes to 1/2
}

// Values and halves of values that float holds exactly: any difference is a wrong array or index.
TEST_P(Peaks, LoopsReadAndWriteEveryArrayInItsRangeOnly) {
  for (const int64_t size : {1, 31, 32, 33, 257}) {
    for (int reads = 0; reads <= kMaxReads; ++reads) {
      for (int writes = 0; writes <= kMaxWrites; ++writes) {
        std::vector<std::vector<float>> in(static_cast<size_t>(reads)), out(static_cast<size_t>(writes));
        std::vector<const float*> from;
        std::vector<float*> to;
        for (size_t r = 0; r < in.size(); ++r) {
          for (int64_t i = 0; i < size + 2; ++i) in[r].push_back(static_cast<float>(i % 64 + 64 * (r + 1)));
          from.push_back(in[r].data());
        }
        for (auto& array : out) {
          array.assign(static_cast<size_t>(size + 2), kUntouched);
          to.push_back(array.data());
        }
        const float sum = memory_loop(from.data(), reads, to.data(), writes, 1, size + 1);
        double total = 0;
        for (size_t i = 1; i <= static_cast<size_t>(size); ++i) {
          double v = reads == 0 ? 1 : in[0][i];
          for (size_t r = 1; r < in.size(); ++r) v = v / 2 + in[r][i];
          for (const auto& array : out) ASSERT_EQ(array[i], v) << reads << " reads, " << writes << " writes at " << i;
          total += v;
        }
        for (const auto& array : out) {
          EXPECT_EQ(array.front(), kUntouched);
          EXPECT_EQ(array.back(), kUntouched);
        }
        const double wanted = writes == 0 && reads > 0 ? total : 0;
        EXPECT_NEAR(sum, wanted, wanted * 1e-5);
      }
    }
  }
}

TEST_P(Peaks, LoopsMayWriteInPlace) {
  std::vector<float> a(33, 4), b(33, 1);
  const float* const in[] = {a.data(), b.data()};
  float* const out[] = {a.data(), b.data()};
  memory_loop(in, 2, out, 2, 0, 33);
  EXPECT_EQ(a, std::vector<float>(33, 3));
  EXPECT_EQ(b, a);
}

}  // namespace
}  // namespace siamese::measure
