// engine.device: what may be said, what is here, what it does not decide.
#include "tests/support/protected_device.h"
#include "tests/train/tiny_run.h"

#include "siamese/train/config_keys.h"
#include "siamese/train/device.h"

namespace siamese::train {
namespace {

template <class Action>
std::string usage_error(const Action& action) {
  try {
    action();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "none";
}

TEST(EngineDevice, NamesAreReadStrictly) {
  EXPECT_EQ(tiny_config().engine.device, "cpu");
  for (const std::string good : {"cpu", "cuda", "cuda:3", "mps", "protected", "protected:0"}) {
    EXPECT_EQ(tiny_config({"engine.device=" + good}).engine.device, good);
  }
  for (const std::string bad : {"gpu", "CUDA", "'cuda:'", "cuda:x", "cuda:-1", "cpu:0", "cpu:7", "meta", "''"}) {
    const std::string error = usage_error([&] { tiny_config({"engine.device=" + bad}); });
    EXPECT_NE(error.find("engine.device: expected cpu, cuda, cuda:N"), std::string::npos) << bad << ": " << error;
  }
}

TEST(EngineDevice, OneThatIsNotHereIsRefusedWithThoseThatAre) {
  EXPECT_EQ(devices_here(), "cpu, protected:0");
  for (const std::string missing : {"cuda", "mps", "xpu:1", "protected:1"}) {
    const std::string expected =
        "engine.device: expected a device that this LibTorch has here (cpu, protected:0), got " + missing;
    EXPECT_EQ(usage_error([&] { device_of({.device = missing}); }), expected);
    EXPECT_EQ(usage_error([&] { apply_engine({.threads = 1, .device = missing}); }), expected);
  }
  EXPECT_EQ(device_of({.device = "cpu"}), at::Device(at::kCPU));
  EXPECT_EQ(device_of({.device = "protected"}), testing::protected_device());
}

TEST(EngineDevice, FusedKernelsAreTheCpus) {
  const std::string error = usage_error([] { device_of({.ops = ops::Mode::fused, .device = "protected"}); });
  EXPECT_EQ(error,
            "engine.ops: expected auto or plain on engine.device protected, got fused: the kernels are the CPU's");
}

TEST(EngineDevice, IsNoPartOfWhatARunIs) {
  EXPECT_FALSE(decides_result("engine.device"));
  EXPECT_TRUE(may_be_edited("engine.device"));
  EXPECT_EQ(result_config(tiny_config()), result_config(tiny_config({"engine.device=cuda"})));
}

}  // namespace
}  // namespace siamese::train
