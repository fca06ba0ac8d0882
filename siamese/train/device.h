// Where a run computes (engine.device).
#pragma once

#include <string>

#include <c10/core/Device.h>

#include "siamese/train/config.h"

namespace siamese::train {

// UsageError unless it is the name of a device that computes: cpu, cuda, cuda:1, mps ... Whether it is here is not
// asked, so that what a run on another machine left can be read.
void check_device_name(const std::string& name);

// With its number. UsageError naming engine.device when this LibTorch does not have it here, or when engine.ops wants
// kernels that only the CPU has.
c10::Device device_of(const EngineConfig& engine);

// The devices that this LibTorch finds here: "cpu, cuda:0, cuda:1".
std::string devices_here();

}  // namespace siamese::train
