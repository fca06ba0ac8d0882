#include "siamese/kernels/junction.h"

#include <limits>

#include "tests/kernels/junction_example.h"

namespace siamese::kernels {
namespace {

SIAMESE_AT_EVERY_SIMD_LEVEL(Junctions);

using Example = JunctionExample;

// Float rounding of a few steps, relative to the largest value of the tensor.
constexpr double kJunctionTolerance = 32 * kUlp;

void expect_equal(const std::vector<JunctionResults::Tensor>& actual,
                  const std::vector<JunctionExpectations::Tensor>& expected, double least, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (size_t k = 0; k < actual.size(); ++k) {
    ASSERT_EQ(actual[k].first, expected[k].first) << what;
    expect_close(actual[k].second, expected[k].second, kJunctionTolerance, what + " " + actual[k].first, least);
  }
}

std::string text(const JunctionCase& c, bool layer, int64_t cols) {
  return c.name + (layer ? " layer " : " rms ") + std::to_string(cols);
}

void expect_equals_reference(const Example& example, int given, int wanted, const std::string& what) {
  const JunctionResults actual = example.run(given, wanted);
  const JunctionExpectations expected = example.expected(given, wanted);
  expect_equal(actual.forward, expected.forward, 0, what);
  // The gradient through the norm of a single number is the difference of two almost equal ones of about 1.
  expect_equal(actual.backward, expected.backward, example.width == 1 ? 1 : 0, what);
}

TEST_P(Junctions, ForwardAndBackwardEqualTheReference) {
  for (const auto& c : scheme_junctions()) {
    for (const bool layer : {false, true}) {
      for (const int64_t cols : {1, 31, 32, 33, 257, 768, 1024}) {
        if (cols == 1 && layer) continue;  // the variance of one number is 0: the gradient is all rounding
        expect_equals_reference(Example(c, layer, cols), Example::kAllGiven, Example::kAllWanted, text(c, layer, cols));
      }
    }
  }
}

// Any set of norms; any set of gradients that came (a null one is 0) and of results that are wanted (a null one is
// not). One stream with a branch and an input norm but no norm of its own is among them.
TEST_P(Junctions, AnySetOfNormsAndOfGradientsEqualsTheReference) {
  for (const auto& c : all_junctions()) {
    for (const bool layer : {false, true}) {
      const int64_t cols = layer ? 19 : 33;
      const Example example(c, layer, cols);
      for (int given = 0; given <= Example::kAllGiven; ++given) {
        for (int wanted = 0; wanted <= Example::kAllWanted; ++wanted) {
          expect_equals_reference(
              example, given, wanted,
              text(c, layer, cols) + " given " + std::to_string(given) + " wanted " + std::to_string(wanted));
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

bool same_results(const JunctionResults& a, const JunctionResults& b) {
  bool same = a.forward.size() == b.forward.size() && a.backward.size() == b.backward.size();
  for (size_t k = 0; same && k < a.forward.size(); ++k) same = same_bits(a.forward[k].second, b.forward[k].second);
  for (size_t k = 0; same && k < a.backward.size(); ++k) same = same_bits(a.backward[k].second, b.backward[k].second);
  return same;
}

TEST_P(Junctions, BitsDependNeitherOnTheRangeNorOnWhatIsWanted) {
  for (const auto& c : all_junctions()) {
    for (const bool layer : {false, true}) {
      for (const int64_t cols : {1, 33, 64}) {
        const Example example(c, layer, cols);
        const JunctionResults all = example.run(Example::kAllGiven, Example::kAllWanted, Example::kRows);
        EXPECT_TRUE(same_results(example.run(), all)) << text(c, layer, cols);
        const JunctionResults some = example.run(Example::kAllGiven, Example::kBranch | Example::kParameters, 2);
        size_t found = 0;
        for (const auto& [name, values] : all.backward) {
          if (name == "dx" || name == "dy") continue;
          EXPECT_EQ(some.backward[found].first, name);
          EXPECT_TRUE(same_bits(some.backward[found++].second, values)) << text(c, layer, cols) << " " << name;
        }
        EXPECT_EQ(found, some.backward.size());
      }
    }
  }
}

// Where rows are whole cache lines, streams and their gradients go past the caches (non-temporal stores); elsewhere
// they may not.
TEST_P(Junctions, StoresPastTheCacheGiveTheSameBits) {
  for (const auto& c : all_junctions()) {
    for (const bool layer : {false, true}) {
      for (const int64_t cols : {16, 32, 48, 768}) {
        const Example example(c, layer, cols);
        LineArrays arrays(0), shifted(1);
        ASSERT_TRUE(can_store_past_cache(arrays.add(example.inputs[0].second), cols));
        ASSERT_FALSE(can_store_past_cache(shifted.add(example.inputs[0].second), cols));
        const JunctionResults aligned = example.run();
        for (const int64_t offset : {1, 4, 8, 15}) {
          EXPECT_TRUE(same_results(example.run(Example::kAllGiven, Example::kAllWanted, 1, offset), aligned))
              << text(c, layer, cols) << " offset " << offset;
        }
        expect_equal(aligned.forward, example.expected().forward, 0, text(c, layer, cols));
      }
      ASSERT_FALSE(can_store_past_cache(static_cast<const float*>(nullptr), 24));
    }
  }
}

enum class Kind { finite, nan, plus, minus };

template <class T>
Kind kind(T value) {
  if (std::isnan(value)) return Kind::nan;
  return !std::isinf(value) ? Kind::finite : value > 0 ? Kind::plus : Kind::minus;
}

template <class Actual, class Expected>
void expect_same_kinds(const Actual& actual, const Expected& expected, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (size_t k = 0; k < actual.size(); ++k) {
    for (size_t i = 0; i < actual[k].second.size(); ++i) {
      ASSERT_EQ(kind(actual[k].second[i]), kind(expected[k].second[i]))
          << what << " " << actual[k].first << "[" << i << "] is " << actual[k].second[i] << ", expected "
          << expected[k].second[i];
    }
  }
}

// In any one place of any one input, NaN or infinity comes out where the mathematics has it and nowhere else.
TEST_P(Junctions, NanAndInfinityGoWhereTheReferenceHasThem) {
  for (const auto& c : all_junctions()) {
    for (const bool layer : {false, true}) {
      for (const int64_t cols : {1, 7, 17, 33}) {
        const Example clean(c, layer, cols);
        for (size_t input = 0; input < clean.inputs.size(); ++input) {
          if (!clean.reads(input)) continue;
          const bool per_row = clean.inputs[input].second.size() > static_cast<size_t>(cols);
          for (int64_t col = 0; col < cols; col += cols == 17 ? 4 : std::max<int64_t>(1, cols - 1)) {
            for (const float value :
                 {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
              Example broken = clean;
              broken.inputs[input].second[static_cast<size_t>((per_row ? cols : 0) + col)] = value;
              const std::string what = text(c, layer, cols) + ", " + std::to_string(value) + " in " +
                                       broken.inputs[input].first + " at " + std::to_string(col);
              const JunctionResults actual = broken.run();
              const JunctionExpectations expected = broken.expected();
              expect_same_kinds(actual.forward, expected.forward, what);
              expect_same_kinds(actual.backward, expected.backward, what);
              if (HasFatalFailure()) return;
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace siamese::kernels
