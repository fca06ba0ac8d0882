#include "siamese/models/weights.h"

#include <filesystem>

#include "tests/support/tensors.h"

#include "siamese/base/check.h"

namespace siamese::models {
namespace {

TEST(Weights, AllMisfitsAreListedAndNothingIsChanged) {
  const auto path = std::filesystem::temp_directory_path() / "siamese_weights_test.safetensors";
  save_tensors(path, {{"a", at::ones({2})}, {"b", at::ones({3})}, {"extra", at::ones({1})}}, {});
  const at::Tensor a = at::zeros({2});
  const at::Tensor b = at::zeros({4});
  try {
    load_tensors(path, {{"a", a}, {"b", b}, {"c", at::zeros({1})}});
    FAIL() << "accepted";
  } catch (const DataError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("missing c"), std::string::npos) << message;
    EXPECT_NE(message.find("unknown extra"), std::string::npos) << message;
    EXPECT_NE(message.find("b: expected F32 [4], got F32 [3]"), std::string::npos) << message;
  }
  EXPECT_TRUE(at::equal(a, at::zeros({2})));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace siamese::models
