// Final states as they would be read at each place of a model, some tokens of them: how alike the places are, and how
// many directions each uses.
//   cosine(i, j) = mean over tokens of cos(x_i, x_j)
//   cka(i, j)    = |X_i' X_j|^2 / (|X_i' X_i| |X_j' X_j|), columns centred (linear CKA, Kornblith et al. 2019)
//   with l the eigenvalues of X' X, columns centred, and s their roots, the singular values:
//   entropy      = -sum p log p, p = l / sum l;   rank = exp(-sum q log q), q = s / sum s (Roy & Vetterli 2007)
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace siamese::eval {

struct Spectrum {
  double rank = 0;
  double entropy = 0;
};

class StateRows {
 public:
  explicit StateRows(size_t places) : rows_(places) {}

  void add(size_t place, const at::Tensor& states);  // [n, width], the same tokens at every place

  // [places, places], float32.
  at::Tensor cosines() const;
  at::Tensor cka() const;
  Spectrum spectrum(size_t place) const;

 private:
  at::Tensor all(size_t place) const;      // [n, width]
  at::Tensor centred(size_t place) const;  // the same less the mean of each column

  std::vector<std::vector<at::Tensor>> rows_;
};

}  // namespace siamese::eval
