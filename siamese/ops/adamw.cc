#include "siamese/ops/adamw.h"

#include <cmath>
#include <string>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include "siamese/base/check.h"
#include "siamese/kernels/adamw.h"
#include "siamese/ops/arguments.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/one_thread.h"
#include "siamese/ops/wide.h"

namespace siamese::ops {

namespace adamw_detail {

void check(const AdamWArguments& a, const std::vector<AdamWTensors>& list) {
  const auto refuse = [](const std::string& what) { throw UsageError("siamese::adamw_step: " + what); };
  if (a.applied_steps < 1) refuse("applied_steps: expected at least 1, got " + std::to_string(a.applied_steps));
  for (const double beta : {a.beta1, a.beta2}) {
    if (!(beta >= 0 && beta < 1)) refuse("beta1, beta2: expected a number in [0, 1), got " + std::to_string(beta));
  }
  for (const auto& [gradient, parameter, first_moment, second_moment, weight_decay, lr_scale] : list) {
    if (!gradient.defined()) continue;
    const Arguments arguments("adamw_step", "parameter", parameter);
    for (const auto& [name, tensor] :
         {std::pair{"parameter", parameter}, std::pair{"gradient", gradient}, std::pair{"first_moment", first_moment},
          std::pair{"second_moment", second_moment}}) {
      if (!tensor.defined()) refuse(std::string(name) + ": expected a tensor, got none");
      arguments.require(tensor.layout() == at::kStrided, name, "a dense layout", c10::str(tensor.layout()));
      arguments.shape(name, tensor, parameter.sym_sizes());
    }
  }
}

}  // namespace adamw_detail

namespace plain {

void adamw_step(const AdamWArguments& a, const std::vector<AdamWTensors>& list) {
  adamw_detail::check(a, list);
  const c10::NoGradGuard no_grad;
  const OneThread one_thread;
  const double bias1 = 1 - std::pow(a.beta1, static_cast<double>(a.applied_steps));
  const double bias2 = 1 - std::pow(a.beta2, static_cast<double>(a.applied_steps));
  for (const auto& [gradient, given, given_first, given_second, weight_decay, lr_scale] : list) {
    if (!gradient.defined()) continue;
    const double lr = a.lr * lr_scale;
    // Half types: computed in float, rounded once. The square of 1e-4 is no number of float16.
    const at::Tensor parameter = wide(given), first_moment = wide(given_first), second_moment = wide(given_second);
    const at::Tensor g = wide(gradient) * a.clip_scale;
    parameter.mul_(1 - lr * weight_decay);
    first_moment.mul_(a.beta1).add_(g, 1 - a.beta1);
    second_moment.mul_(a.beta2).add_(g.square(), 1 - a.beta2);
    parameter.sub_(first_moment / (second_moment.sqrt() / std::sqrt(bias2) + a.eps) * (lr / bias1));
    if (parameter.is_same(given)) continue;
    given.copy_(parameter);
    given_first.copy_(first_moment);
    given_second.copy_(second_moment);
  }
}

}  // namespace plain

namespace adamw_detail {

// What one thread takes at a time: a piece of one parameter.
struct Piece {
  const float* gradient;
  float* parameter;
  float* first_moment;
  float* second_moment;
  double weight_decay;
  double lr_scale;
  int64_t size;
};

constexpr int64_t kPiece = 32768;

void cut(const AdamWTensors& tensors, std::vector<Piece>& pieces) {
  for (int64_t begin = 0; begin < tensors.parameter.numel(); begin += kPiece) {
    pieces.push_back({tensors.gradient.const_data_ptr<float>() + begin,
                      tensors.parameter.mutable_data_ptr<float>() + begin,
                      tensors.first_moment.mutable_data_ptr<float>() + begin,
                      tensors.second_moment.mutable_data_ptr<float>() + begin, tensors.weight_decay, tensors.lr_scale,
                      std::min(kPiece, tensors.parameter.numel() - begin)});
  }
}

bool dense(const AdamWTensors& of) {
  return of.gradient.is_contiguous() && of.parameter.is_contiguous() && of.first_moment.is_contiguous() &&
         of.second_moment.is_contiguous();
}

}  // namespace adamw_detail

void adamw_step(const AdamWArguments& a, const std::vector<AdamWTensors>& list) {
  adamw_detail::check(a, list);
  const c10::NoGradGuard no_grad;
  std::vector<adamw_detail::Piece> pieces;
  for (const auto& tensors : list) {
    if (!tensors.gradient.defined()) continue;
    if (adamw_detail::dense(tensors) && use_fused("adamw_step", {tensors.parameter})) {
      adamw_detail::cut(tensors, pieces);
    } else {
      plain::adamw_step(a, {tensors});
    }
  }
  const auto steps = static_cast<double>(a.applied_steps);
  kernels::AdamWStep common{.lr = a.lr,
                            .beta1 = a.beta1,
                            .beta2 = a.beta2,
                            .eps = a.eps,
                            .bias1 = 1 - std::pow(a.beta1, steps),
                            .bias2 = 1 - std::pow(a.beta2, steps),
                            .clip_scale = a.clip_scale};
  at::parallel_for(0, static_cast<int64_t>(pieces.size()), 1, [&](int64_t first, int64_t last) {
    kernels::AdamWStep step = common;
    for (int64_t i = first; i < last; ++i) {
      const adamw_detail::Piece& piece = pieces[static_cast<size_t>(i)];
      step.weight_decay = piece.weight_decay;
      step.lr = common.lr * piece.lr_scale;
      kernels::adamw_update(step, piece.gradient, piece.parameter, piece.first_moment, piece.second_moment, 0,
                            piece.size);
    }
  });
}

}  // namespace siamese::ops
