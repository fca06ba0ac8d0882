#include "siamese/train/device.h"

#include <optional>
#include <vector>

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "siamese/base/check.h"
#include "siamese/base/join.h"

namespace siamese::train {
namespace device_detail {

std::optional<c10::Device> parsed(const std::string& name) {
  try {
    const c10::Device device(name);
    if (device.is_meta() || (device.is_cpu() && device.has_index())) return std::nullopt;
    return device;
  } catch (const c10::Error&) {
    return std::nullopt;
  }
}

// LibTorch asks the same: every device that can compute has such a guard.
int count_of(c10::DeviceType type) {
  return c10::impl::hasDeviceGuardImpl(type) ? c10::impl::getDeviceGuardImpl(type)->deviceCount() : 0;
}

}  // namespace device_detail

void check_device_name(const std::string& name) {
  if (device_detail::parsed(name)) return;
  throw UsageError("engine.device: expected cpu, cuda, cuda:N, mps, xpu or another device of LibTorch, got '" + name +
                   "'");
}

c10::Device device_of(const EngineConfig& engine) {
  check_device_name(engine.device);
  const c10::Device device = *device_detail::parsed(engine.device);
  const int count = device_detail::count_of(device.type());
  if (count == 0 || device.index() >= count) {
    throw UsageError("engine.device: expected a device that this LibTorch has here (" + devices_here() + "), got " +
                     engine.device);
  }
  if (device.is_cpu()) return device;
  if (engine.ops == ops::Mode::fused) {
    throw UsageError("engine.ops: expected auto or plain on engine.device " + engine.device +
                     ", got fused: the kernels are the CPU's");
  }
  return device.has_index() ? device : c10::impl::getDeviceGuardImpl(device.type())->getDevice();
}

std::string devices_here() {
  std::vector<std::string> names = {"cpu"};
  for (int i = 0; i < c10::COMPILE_TIME_MAX_DEVICE_TYPES; ++i) {
    const auto type = static_cast<c10::DeviceType>(i);
    if (type == c10::DeviceType::CPU || type == c10::DeviceType::Meta) continue;
    const int count = device_detail::count_of(type);
    for (int index = 0; index < count; ++index) {
      names.push_back(c10::Device(type, static_cast<c10::DeviceIndex>(index)).str());
    }
  }
  return join(names, ", ");
}

}  // namespace siamese::train
