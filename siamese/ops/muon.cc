#include "siamese/ops/muon.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "siamese/base/check.h"
#include "siamese/ops/arguments.h"
#include "siamese/ops/product.h"
#include "siamese/ops/reduce.h"

namespace siamese::ops {

namespace muon_detail {

constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315;
constexpr int kIterations = 5;
constexpr double kLeastNorm = 1e-7;

void check(const MuonArguments& a, const std::vector<MuonTensors>& list) {
  const auto refuse = [](const std::string& what) { throw UsageError("siamese::muon_step: " + what); };
  if (!(a.momentum >= 0 && a.momentum < 1)) {
    refuse("momentum: expected a number in [0, 1), got " + std::to_string(a.momentum));
  }
  for (const MuonTensors& of : list) {
    if (!of.gradient.defined()) continue;
    const Arguments arguments("muon_step", "parameter", of.parameter);
    for (const auto& [name, tensor] : {std::pair{"parameter", of.parameter}, std::pair{"gradient", of.gradient},
                                       std::pair{"momentum", of.momentum}}) {
      if (!tensor.defined()) refuse(std::string(name) + ": expected a tensor, got none");
      arguments.require(tensor.layout() == at::kStrided, name, "a dense layout", c10::str(tensor.layout()));
      arguments.shape(name, tensor, of.parameter.sym_sizes());
    }
    const at::ScalarType type = of.parameter.scalar_type();
    arguments.require(type == at::kFloat || type == at::kDouble, "parameter", "float32 or double", c10::toString(type));
    const int64_t rank = of.parameter.dim();
    arguments.require(rank == 2 || rank == 3, "parameter", "2 or 3 dimensions", shape_text(of.parameter.sym_sizes()));
    const bool positive = std::all_of(of.rows.begin(), of.rows.end(), [](int64_t rows) { return rows > 0; });
    const int64_t all = std::accumulate(of.rows.begin(), of.rows.end(), int64_t{0});
    arguments.require(positive && all == of.parameter.size(-2), "rows",
                      "matrices of " + std::to_string(of.parameter.size(-2)) + " rows together", std::to_string(all));
  }
}

// Only sums and products of two numbers, each rounded: what LibTorch fuses, it fuses by where a thread's share ends.
void step_of(const MuonArguments& a, const MuonTensors& of) {
  const double lr = a.lr * of.lr_scale;
  const at::Tensor g = of.gradient * (a.clip_scale * (1 - a.momentum));
  of.momentum.mul_(a.momentum).add_(g);
  const at::Tensor u = (of.momentum * a.momentum).add_(g);
  of.parameter.mul_(1 - lr * of.weight_decay);
  const int64_t cols = of.parameter.size(-1);
  const auto one = [&](const at::Tensor& parameter, const at::Tensor& update) {
    int64_t first = 0;
    for (const int64_t rows : of.rows) {
      const double rate = lr * muon_scale(a.scale, rows, cols);
      parameter.narrow(0, first, rows).sub_(newton_schulz(update.narrow(0, first, rows)).mul_(rate));
      first += rows;
    }
  };
  if (u.dim() == 2) return one(of.parameter, u);
  for (int64_t expert = 0; expert < u.size(0); ++expert) one(of.parameter.select(0, expert), u.select(0, expert));
}

}  // namespace muon_detail

double muon_scale(MuonScale scale, int64_t rows, int64_t cols) {
  const auto tall = static_cast<double>(rows), wide = static_cast<double>(cols);
  return scale == MuonScale::original ? std::sqrt(std::max(1.0, tall / wide)) : 0.2 * std::sqrt(std::max(tall, wide));
}

at::Tensor newton_schulz(const at::Tensor& u) {
  using namespace muon_detail;
  const c10::NoGradGuard no_grad;
  const bool tall = u.size(0) > u.size(1);
  const at::Tensor norm = sum_squares_of({u}).sqrt_().clamp_min_(kLeastNorm).to(u.scalar_type());
  at::Tensor x = (tall ? u.t() : u).contiguous() / norm;
  for (int i = 0; i < kIterations; ++i) {
    at::Tensor gram = times_transposed(x, x);
    at::Tensor polynomial = times(gram, gram).mul_(kC);
    polynomial.add_(gram.mul_(kB));
    at::Tensor next = times(polynomial, x);
    x = next.add_(x.mul_(kA));
  }
  return tall ? x.t().contiguous() : x;
}

double newton_schulz_flops(int64_t rows, int64_t cols) {
  const auto least = static_cast<double>(std::min(rows, cols)), most = static_cast<double>(std::max(rows, cols));
  return muon_detail::kIterations * (4 * least * least * most + 2 * least * least * least);
}

void muon_step(const MuonArguments& arguments, const std::vector<MuonTensors>& list) {
  muon_detail::check(arguments, list);
  const c10::NoGradGuard no_grad;
  for (const MuonTensors& tensors : list) {
    if (tensors.gradient.defined()) muon_detail::step_of(arguments, tensors);
  }
}

}  // namespace siamese::ops
