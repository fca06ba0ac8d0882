// Loss and gradients of every family under every scheme, on the stand-in device and on the CPU: the same bits.
#include "tests/support/schemes.h"

#include "tests/models/small_families.h"
#include "tests/support/protected_device.h"

#include "siamese/ops/mode.h"
#include "siamese/ops/one_thread.h"

namespace siamese::models {
namespace schemes_test {

std::vector<at::Tensor> loss_and_gradients(const ModelConfig& config, const at::Device& device) {
  const auto model = make_model(config, large_init(), 1, device);
  const Losses losses = model->losses(family_inputs(config, 2, 3), family_options(config, 2));
  losses.objective.backward();
  std::vector<at::Tensor> made = {losses.objective.detach().cpu()};
  for (const auto& parameter : model->parameters().list()) made.push_back(parameter.value.grad().cpu());
  return made;
}

void expect_same_there(const ModelConfig& config) {
  const auto there = loss_and_gradients(config, testing::protected_device());
  const auto here = loss_and_gradients(config, at::kCPU);
  ASSERT_EQ(there.size(), here.size());
  for (size_t i = 0; i < here.size(); ++i) testing::expect_same_bits(there[i], here[i], std::to_string(i));
}

TEST(DeviceSchemes, EverySchemeInEveryFamily) {
  const ops::ModeGuard plain(ops::Mode::plain);
  const ops::OneThread one_thread;
  for (const Family family : all_families()) {
    for (const std::string& scheme : schemes_of(family)) {
      SCOPED_TRACE(case_name(family, scheme));
      expect_same_there(small_family(family, scheme));
    }
  }
}

TEST(DeviceSchemes, ValuesOfEarlierBlocksInEveryFamily) {
  const ops::ModeGuard plain(ops::Mode::plain);
  const ops::OneThread one_thread;
  for (const Family family : all_families()) {
    for (const ModelConfig& config : value_mixings(family)) {
      SCOPED_TRACE(case_name(family, std::string(enum_text(config.value_residual))));
      expect_same_there(config);
    }
  }
}

}  // namespace schemes_test
}  // namespace siamese::models
