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

namespace {

bool has_kernel_for(const char* op, std::initializer_list<at::Tensor> tensors, bool bfloat16_too) {
  if (mode() == Mode::plain) return false;
  for (const auto& tensor : tensors) {
    if (!tensor.defined()) continue;
    const bool fits = tensor.scalar_type() == at::kFloat || (bfloat16_too && tensor.scalar_type() == at::kBFloat16);
    if (fits && tensor.device().is_cpu()) continue;
    if (mode() == Mode::automatic) return false;
    std::stringstream message;
    message << "engine.ops: fused: " << op << " has a kernel for float32" << (bfloat16_too ? " and bfloat16" : "")
            << " on the CPU, got " << tensor.scalar_type() << " on " << tensor.device();
    throw UsageError(message.str());
  }
  return true;
}

}  // namespace

bool use_fused(const char* op, std::initializer_list<at::Tensor> tensors) { return has_kernel_for(op, tensors, false); }

bool use_fused_bfloat16(const char* op, std::initializer_list<at::Tensor> tensors) {
  return has_kernel_for(op, tensors, true);
}

}  // namespace siamese::ops
