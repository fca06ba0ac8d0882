// Ten losses of a tiny model, stored: a change of the mathematics that no other test names shows here.
// The numbers are what this test prints when it fails; they are rewritten only with a reason in the commit.
#include "tests/train/tiny_run.h"

#include "siamese/train/trainer.h"

namespace siamese::train {
namespace {

void expect_losses(const RunConfig& config, const std::vector<double>& golden) {
  Trainer trainer(config);
  const std::string name = std::string(enum_text(config.model.family)) + " " + config.model.residual;
  std::string measured;
  for (size_t i = 0; i < 10; ++i) {
    const double loss = trainer.step().loss;
    measured += std::to_string(loss) + ", ";
    EXPECT_NEAR(loss, i < golden.size() ? golden[i] : 0, 1e-4) << name << " step " << i + 1;
  }
  if (::testing::Test::HasFailure()) std::printf("%s: %s\n", name.c_str(), measured.c_str());
}

void expect_losses(const std::string& scheme, const std::vector<double>& golden) {
  expect_losses(tiny_config({"model.residual=" + scheme, "optim.lr=1e-2", "data.digits=2", "train.seed=3"}), golden);
}

RunConfig family_config(const std::string& family, const std::string& scheme) {
  return tiny_family(family, {"model.residual=" + scheme, "optim.lr=1e-2", "train.seed=3"});
}

TEST(Golden, Pre) {
  expect_losses("pre",
                {2.872054, 2.697409, 2.524563, 2.430527, 2.346805, 2.365412, 2.438172, 2.364031, 2.276980, 2.351099});
}
TEST(Golden, Siamese) {
  expect_losses("siamese",
                {2.987294, 2.801591, 2.597911, 2.477168, 2.395611, 2.393268, 2.466567, 2.357645, 2.346960, 2.415528});
}
TEST(Golden, SiameseHybrid) {
  expect_losses("siamese(x=hybrid)",
                {2.874084, 2.640101, 2.515757, 2.409417, 2.341511, 2.348716, 2.430072, 2.350634, 2.344950, 2.374619});
}
TEST(Golden, MoePre) {
  expect_losses(family_config("moe", "pre"),
                {3.124276, 2.614077, 2.385263, 2.228302, 2.178373, 2.111594, 2.102871, 1.999949, 2.038807, 2.084124});
}
TEST(Golden, MoeSiamese) {
  expect_losses(family_config("moe", "siamese"),
                {3.248930, 2.878834, 2.522513, 2.328193, 2.292299, 2.164823, 2.150882, 2.119423, 2.109921, 2.102449});
}
TEST(Golden, VitPre) {
  expect_losses(family_config("vit", "pre"),
                {2.244497, 3.367737, 3.044225, 3.256536, 2.463775, 2.826972, 2.778444, 2.613897, 2.601420, 2.861008});
}
TEST(Golden, VitSiamese) {
  expect_losses(family_config("vit", "siamese"),
                {2.261961, 3.845750, 3.206485, 3.400660, 2.510000, 2.303905, 3.151410, 2.443687, 2.567495, 2.907738});
}
TEST(Golden, DitPre) {
  expect_losses(family_config("dit", "pre"),
                {0.975904, 0.963804, 0.955555, 0.934344, 0.946058, 0.900017, 0.920704, 0.866994, 0.893013, 0.839644});
}
TEST(Golden, DitSiamese) {
  expect_losses(family_config("dit", "siamese"),
                {0.975904, 0.963804, 0.955256, 0.933310, 0.944357, 0.897446, 0.919237, 0.865046, 0.891932, 0.838345});
}

}  // namespace
}  // namespace siamese::train
