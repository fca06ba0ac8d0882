// A pass of the op junction as its kernels see it: its tensors in one order, and a plan of the rest.
#pragma once

#include <array>
#include <cstdint>

#include <ATen/core/Tensor.h>
#include <c10/core/SymIntArrayRef.h>

#include "siamese/ops/junction.h"

namespace siamese::ops::junction_op {

// Forward's arguments, and backward's gradients.
enum Slot : size_t {
  kBranch,  // z
  kX,       // in backward U stands here
  kY,       // and V here
  kXScale,
  kGains,              // gain, then bias, of each norm in the order below
  kGate = kGains + 8,  // of the branch
  kSlots,              // their number
};
enum NormOf : size_t { kOfBranch, kOfX, kOfY, kOfInput, kNorms };

inline size_t gain_of(size_t norm) { return kGains + 2 * norm; }
inline size_t bias_of(size_t norm) { return kGains + 2 * norm + 1; }

using PerSlot = std::array<at::Tensor, kSlots>;  // undefined: absent, or a gradient that is not wanted
using Wanted = std::array<bool, kSlots>;

// Everything about a pass that is no tensor. It alone decides which outputs are made, so that shapes need no data.
struct JunctionPlan {
  double x_branch = 0;
  double y_branch = 0;
  double y_skip = 1;
  double input_scale = 1;
  std::array<bool, kNorms> norms{};  // which are there
  std::array<bool, kNorms> layer{};  // LayerNorm, else RMSNorm
  std::array<double, kNorms> eps{};
  bool half_input = false;   // the input, and what comes back to it, is bfloat16
  bool half_branch = false;  // and the branch with its gradient
  bool has_branch = false;
  bool has_gate = false;
  bool has_x = false;

  // For these tensors: without a branch there is no norm or gate of it, with one stream none of x. A branch that is
  // there says whether it is bfloat16.
  JunctionPlan given(const PerSlot& tensors) const;

  bool adds_to_x() const { return has_x && has_branch && x_branch != 0; }
  bool makes_y_sum() const { return (has_branch && y_branch != 0) || y_skip != 1; }  // else V is y
  bool makes_x_out() const { return adds_to_x() || norms[kOfX]; }                    // else X is x
  bool makes_x_sum() const { return adds_to_x() && norms[kOfX]; }                    // else U is X, or x
  bool makes_input() const {                                                         // else it is V
    return has_x || norms[kOfY] || norms[kOfInput] || input_scale != 1 || half_input;
  }

  // pre: branch and y are summed alike, so that what comes back to the sum is the gradient of both.
  bool y_gradient_is_the_branchs() const {
    return !norms[kOfBranch] && !has_gate && !half_branch && !(has_x && x_branch != 0) && y_branch == y_skip;
  }

  // Of these gradients those that exist: a gain whose norm is not there has none.
  Wanted within(const Wanted& wanted, const PerSlot& tensors) const;

  // [numbers of a row, leading sizes of y]: of each norm 1 / deviation, before it the mean of a LayerNorm.
  c10::SymDimVector statistics_shape(const at::Tensor& y) const;
};

// The branch's norm and gate have their gradients from what comes back to the branch.
inline bool reaches_branch(const Wanted& wanted) {
  return wanted[kBranch] || wanted[kGate] || wanted[gain_of(kOfBranch)] || wanted[bias_of(kOfBranch)];
}

// A junction as C++ callers write it.
PerSlot tensors_of(const Junction& junction);
JunctionPlan plan_of(const Junction& junction);

// UsageError unless the tensors fit one another and the plan.
void check_tensors(const char* op, const PerSlot& tensors, const JunctionPlan& plan);

}  // namespace siamese::ops::junction_op
