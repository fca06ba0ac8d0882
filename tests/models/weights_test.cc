#include "siamese/models/weights.h"

#include <filesystem>

#include "tests/models/small_families.h"
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

struct WeightFile {
  ~WeightFile() { std::filesystem::remove(path); }
  std::filesystem::path path = std::filesystem::temp_directory_path() / "siamese_weight_file.safetensors";
};

// The fixed positions of a dit: stored, read back as given, no parameter; a file without them is complete.
TEST(Weights, BuffersTravelWithTheWeights) {
  const auto config = small_family(Family::dit, "siamese");
  const auto model = make_small(config);
  ASSERT_EQ(model->parameters().buffers().size(), 1U);
  const auto& [name, table] = model->parameters().buffers()[0];
  EXPECT_EQ(name, "positions.weight");
  EXPECT_EQ(table.sizes(), at::IntArrayRef({9, config.width}));
  EXPECT_FALSE(table.requires_grad());
  EXPECT_EQ(model->parameters().find(name), nullptr);

  const WeightFile file;
  const at::Tensor computed = table.clone();
  table.mul_(2);  // somebody else's table
  save_tensors(file.path, named_values(model->parameters()), {});
  const auto other = make_small(config, 2);
  load_tensors(file.path, named_values(other->parameters()));
  testing::expect_same_bits(other->parameters().buffers()[0].value, computed * 2, "as given");
  // And it is what the model uses.
  const at::Tensor x = testing::randn({1, config.channels, config.image, config.image}, 3, at::kFloat);
  const at::Tensor t = at::zeros({1}, at::kLong);
  const auto output = [&](const Model& of) { return dynamic_cast<const DiffusionTransformer&>(of).output(x, t, t); };
  const auto& last = other->parameters().find("final.out.weight")->value;
  const at::NoGradGuard no_grad;
  last.copy_(testing::randn(last.sizes(), 4));
  const at::Tensor with_theirs = output(*other);
  other->parameters().buffers()[0].value.copy_(computed);
  EXPECT_GT(testing::largest_difference(output(*other), with_theirs), 1e-3);

  std::vector<NamedTensor> parameters_alone;
  for (const auto& parameter : model->parameters().list())
    parameters_alone.push_back({parameter.name, parameter.value});
  save_tensors(file.path, parameters_alone, {});
  load_tensors(file.path, named_values(other->parameters()));
  testing::expect_same_bits(other->parameters().buffers()[0].value, computed, "as computed");
}

TEST(Weights, OtherFloatingPointTypesAreConverted) {
  const WeightFile file;
  const at::Tensor values = testing::randn({3, 5}, 1);
  for (const at::ScalarType type : {at::kHalf, at::kBFloat16, at::kDouble}) {
    save_tensors(file.path, {{"a", values.to(type)}}, {});
    const at::Tensor read = at::zeros({3, 5});
    load_tensors(file.path, {{"a", read}});
    testing::expect_same_bits(read, values.to(type).to(at::kFloat), "converted");
  }
  save_tensors(file.path, {{"a", at::ones({3, 5}, at::kLong)}}, {});
  EXPECT_THROW(load_tensors(file.path, {{"a", at::zeros({3, 5})}}), DataError);
}

TEST(Weights, TheListOfAModelNeedsNoMemory) {
  for (const Family family : all_families()) {
    const auto config = small_family(family, "siamese");
    const auto model = make_small(config);
    const auto real = named_values(model->parameters());
    const auto listed = tensor_list(config);
    ASSERT_EQ(listed.size(), real.size());
    for (size_t i = 0; i < real.size(); ++i) {
      EXPECT_EQ(listed[i].name, real[i].name);
      EXPECT_EQ(listed[i].value.sizes(), real[i].value.sizes());
      EXPECT_EQ(listed[i].optional, real[i].optional);
      EXPECT_TRUE(listed[i].value.is_meta());
    }
  }
}

}  // namespace
}  // namespace siamese::models
