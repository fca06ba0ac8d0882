#include "siamese/eval/tensor_statistics.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include "siamese/ops/one_thread.h"

namespace siamese::eval {

TensorStatistics tensor_statistics(const at::Tensor& tensor) {
  const ops::OneThread one_thread;  // sums in one order
  constexpr int64_t kPiece = 1 << 20;
  TensorStatistics result;
  const at::Tensor flat = tensor.reshape({-1});
  int64_t& count = result.finite;
  double squares = 0;  // summed squared deviations from the mean
  for (int64_t begin = 0; begin < flat.numel(); begin += kPiece) {
    const at::Tensor all = flat.narrow(0, begin, std::min(kPiece, flat.numel() - begin)).to(at::kDouble);
    const at::Tensor piece = all.masked_select(at::isfinite(all));
    result.not_finite += all.numel() - piece.numel();
    if (piece.numel() == 0) continue;
    // Two pieces' means and deviations make those of both (Chan et al.): no sum of raw squares that would cancel.
    const auto added = piece.numel();
    const double mean = piece.mean().item<double>();
    const double difference = mean - result.mean;
    const auto before = static_cast<double>(count), more = static_cast<double>(added);
    squares += (piece - mean).square().sum().item<double>() + difference * difference * before * more / (before + more);
    result.mean += difference * more / (before + more);
    const double least = piece.min().item<double>(), largest = piece.max().item<double>();
    result.least = count == 0 ? least : std::min(result.least, least);
    result.largest = count == 0 ? largest : std::max(result.largest, largest);
    count += added;
  }
  if (count > 0) result.std = std::sqrt(squares / static_cast<double>(count));
  return result;
}

}  // namespace siamese::eval
