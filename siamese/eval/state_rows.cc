#include "siamese/eval/state_rows.h"

#include <cmath>

#include <ATen/ATen.h>

#include "siamese/eval/value_sums.h"
#include "siamese/ops/one_thread.h"

namespace siamese::eval {

namespace state_rows_detail {

// -sum p log p of numbers >= 0, with p their shares.
double entropy(const at::Tensor& numbers) {
  const at::Tensor total = numbers.sum();
  if (!(total.item<double>() > 0)) return 0;
  const at::Tensor shares = numbers / total;
  return -(shares * shares.clamp_min(1e-300).log()).sum().item<double>();
}

double squared(const at::Tensor& matrix) { return matrix.to(at::kDouble).square().sum().item<double>(); }

// Of every pair i <= j, mirrored.
template <class Of>
at::Tensor symmetric(size_t count, const Of& of) {
  const auto size = static_cast<int64_t>(count);
  at::Tensor matrix = at::zeros({size, size});
  for (int64_t i = 0; i < size; ++i) {
    for (int64_t j = i; j < size; ++j) {
      const double value = of(static_cast<size_t>(i), static_cast<size_t>(j));
      matrix[i][j] = value;
      matrix[j][i] = value;
    }
  }
  return matrix;
}

}  // namespace state_rows_detail

void StateRows::add(size_t place, const at::Tensor& states) { rows_.at(place).push_back(float_rows(states)); }

at::Tensor StateRows::all(size_t place) const { return at::cat(rows_.at(place)); }

at::Tensor StateRows::centred(size_t place) const {
  const at::Tensor rows = all(place);
  return rows - rows.to(at::kDouble).mean(0, /*keepdim=*/true).to(at::kFloat);
}

at::Tensor StateRows::cosines() const {
  return state_rows_detail::symmetric(rows_.size(), [&](size_t i, size_t j) {
    CosineSums sums;
    sums.add(all(i), all(j));
    return sums.mean();
  });
}

at::Tensor StateRows::cka() const {
  const ops::OneThread one_thread;  // products in one order
  std::vector<at::Tensor> centres;
  std::vector<double> own;  // |X' X|
  for (size_t i = 0; i < rows_.size(); ++i) {
    centres.push_back(centred(i));
    own.push_back(std::sqrt(state_rows_detail::squared(at::mm(centres[i].t(), centres[i]))));
  }
  return state_rows_detail::symmetric(rows_.size(), [&](size_t i, size_t j) {
    const double both = own[i] * own[j];
    return both > 0 ? state_rows_detail::squared(at::mm(centres[i].t(), centres[j])) / both : 0;
  });
}

Spectrum StateRows::spectrum(size_t place) const {
  const ops::OneThread one_thread;
  const at::Tensor rows = centred(place).to(at::kDouble);
  // X' X and X X' have the same eigenvalues but for zeros: the smaller one.
  const bool wide = rows.size(1) > rows.size(0);
  const at::Tensor products = wide ? at::mm(rows, rows.t()) : at::mm(rows.t(), rows);
  const at::Tensor values = at::linalg_eigvalsh(products).clamp_min(0);
  return {.rank = std::exp(state_rows_detail::entropy(values.sqrt())), .entropy = state_rows_detail::entropy(values)};
}

}  // namespace siamese::eval
