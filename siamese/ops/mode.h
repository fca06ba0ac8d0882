// One switch for a whole run: the plain ATen expression or our fused kernel (config key engine.ops).
#pragma once

#include <initializer_list>

#include <ATen/core/Tensor.h>

#include "siamese/base/enum_text.h"

namespace siamese::ops {

// automatic: fused where a kernel exists for dtype and device, plain elsewhere. fused: an error where none exists.
enum class Mode { automatic, plain, fused };

void set_mode(Mode mode);
Mode mode();

// Whether `op` shall run its kernel on these tensors (undefined ones are ignored): CPU, float32. The second: or
// bfloat16.
bool use_fused(const char* op, std::initializer_list<at::Tensor> tensors);
bool use_fused_bfloat16(const char* op, std::initializer_list<at::Tensor> tensors);

// Sets the mode for a scope: tests compare both.
class ModeGuard {
 public:
  explicit ModeGuard(Mode mode) : previous_(ops::mode()) { set_mode(mode); }
  ~ModeGuard() { set_mode(previous_); }
  ModeGuard(const ModeGuard&) = delete;
  ModeGuard& operator=(const ModeGuard&) = delete;

 private:
  Mode previous_;
};

}  // namespace siamese::ops

template <>
struct siamese::EnumText<siamese::ops::Mode> {
  static constexpr EnumNames<ops::Mode, 3> names{
      {{ops::Mode::automatic, "auto"}, {ops::Mode::plain, "plain"}, {ops::Mode::fused, "fused"}}};
};
