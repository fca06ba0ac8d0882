// A device without hardware, for tests: LibTorch's PrivateUse1 under the name "protected". What its tensors call their
// data are addresses that nobody may touch, so that host code which follows such a pointer ends in SIGSEGV; the numbers
// lie elsewhere, where only the kernels of this device find them. Kernels are LibTorch's own for the CPU, one operator
// at a time: an op of ours runs its plain expression, as on any device without kernels of ours.
#pragma once

#include <cstdint>

#include <c10/core/Device.h>

namespace siamese::testing {

c10::Device protected_device();

// How often the host has waited for numbers of the device (a copy to the host, an item) since the process began.
int64_t host_reads();

}  // namespace siamese::testing
