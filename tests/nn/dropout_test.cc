#include "siamese/nn/dropout.h"

#include "tests/support/threads.h"

#include "siamese/base/check.h"

namespace siamese::nn {
namespace dropout_test {

// Its definition, element by element: word e % 4 of draw e / 4 of the sample's stream, below the chance.
at::Tensor by_hand(const Dropout& dropout, at::IntArrayRef shape) {
  at::Tensor mask = at::empty(shape, at::kBool);
  const int64_t each = mask.numel() / shape[0];
  for (int64_t i = 0; i < mask.numel(); ++i) {
    const auto words = random_words(dropout.key, dropout.first_position + static_cast<uint64_t>(i / each),
                                    static_cast<uint64_t>(i % each / 4));
    mask.mutable_data_ptr<bool>()[i] =
        static_cast<double>(words[static_cast<size_t>(i % each % 4)]) < dropout.chance * 4294967296.0;
  }
  return mask;
}

TEST(Dropout, IsItsDefinition) {
  const Dropout dropout{0.3, 99, 7};
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{3, 5}, {2, 7, 9}, {1, 4}, {5, 1, 1}, {2, 3, 4, 4}}) {
    EXPECT_TRUE(at::equal(dropout.dropped(shape, at::kCPU), by_hand(dropout, shape)));
  }
  for (const auto type : {at::kDouble, at::kFloat, at::kBFloat16}) {
    const at::Tensor x = testing::leaf(testing::randn({3, 5, 7}, 1, type));
    const at::Tensor kept = by_hand(dropout, x.sizes()).logical_not().to(type);
    const at::Tensor y = dropout(x);
    EXPECT_EQ(y.scalar_type(), type);
    testing::expect_relative(y, x.detach().to(at::kDouble) * kept / 0.7, type == at::kBFloat16 ? 1.0 / 256 : 1e-6, "y");
    testing::expect_same_bits(testing::gradients(y, {x})[0],
                              testing::randn(x.sizes(), 4242, type) * (1 / (1 - 0.3)) * kept, "the same are dropped");
  }
}

// A sample is dropped alike wherever a batch begins; another sample, place or run differently.
TEST(Dropout, BelongsToTheSampleAndThePlace) {
  const at::Tensor all = Dropout{0.5, 1, 10}.dropped({6, 40}, at::kCPU);
  EXPECT_TRUE(at::equal(Dropout({0.5, 1, 12}).dropped({3, 40}, at::kCPU), all.narrow(0, 2, 3)));
  EXPECT_FALSE(at::equal(all[0], all[1]));
  EXPECT_FALSE(at::equal(Dropout({0.5, 2, 10}).dropped({6, 40}, at::kCPU), all));
}

// 40000 draws: the share lies within four standard deviations, and what is kept makes up for what is not.
TEST(Dropout, KeepsTheExpectation) {
  for (const double chance : {0.1, 0.5, 0.9}) {
    const Dropout dropout{chance, 3, 0};
    const at::Tensor x = at::ones({10, 4000}, at::kDouble);
    const double deviation = std::sqrt(chance * (1 - chance) / 40000);
    EXPECT_NEAR(dropout.dropped(x.sizes(), at::kCPU).to(at::kDouble).mean().item<double>(), chance, 4 * deviation);
    EXPECT_NEAR(dropout(x).mean().item<double>(), 1, 4 * deviation / (1 - chance));
  }
}

TEST(Dropout, TheSameBitsAtAnyNumberOfThreads) {
  testing::expect_function_same_at_any_thread_count("dropout", {testing::randn({5, 131, 77}, 1, at::kFloat)},
                                                    [](const auto& in) {
                                                      return Dropout{0.2, 5, 3}(in[0]);
                                                    });
}

TEST(Dropout, OffIsNothing) {
  const at::Tensor x = at::ones({2, 3});
  EXPECT_TRUE(Dropout{}(x).is_same(x));
  EXPECT_EQ(Dropout({0.5, 1, 0})(at::ones({0, 3})).numel(), 0);
  EXPECT_THROW(Dropout({1, 1, 0})(x), UsageError);
}

}  // namespace dropout_test
}  // namespace siamese::nn
