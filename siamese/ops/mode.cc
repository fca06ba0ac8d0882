#include "siamese/ops/mode.h"

#include <atomic>
#include <sstream>

#include "siamese/base/check.h"

namespace siamese::ops {
namespace {

std::atomic<Mode> current_mode{Mode::automatic};

}  // namespace

void set_mode(Mode mode) { current_mode = mode; }
Mode mode() { return current_mode; }

bool use_fused(const char* op, std::initializer_list<at::Tensor> tensors) {
  if (mode() == Mode::plain) return false;
  for (const auto& tensor : tensors) {
    if (!tensor.defined() || (tensor.device().is_cpu() && tensor.scalar_type() == at::kFloat)) continue;
    if (mode() == Mode::automatic) return false;
    std::stringstream message;
    message << "engine.ops: fused: " << op << " has a kernel for float32 on the CPU, got " << tensor.scalar_type()
            << " on " << tensor.device();
    throw UsageError(message.str());
  }
  return true;
}

}  // namespace siamese::ops
