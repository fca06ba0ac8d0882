// Cross-entropy and z-loss of rows of logits, and their gradient in place of the logits. With n = logsumexp(logits):
//   nll = n - logits[target]     z = n^2
//   d (nll_scale * nll + z_scale * z) / d logits = (nll_scale + 2 z_scale n) softmax(logits) - nll_scale onehot(target)
// A row's result does not depend on the range it is computed in.
#pragma once

#include <cstdint>

#include "siamese/kernels/bfloat16.h"

namespace siamese::kernels {

template <class T>  // float or Bfloat16
struct CrossEntropyRowsOf {
  T* logits = nullptr;               // [rows, vocab]; the gradient's place when `gradient`
  const int64_t* targets = nullptr;  // [rows], each in [0, vocab)
  const float* weights = nullptr;    // [rows], factor of both scales, or null (1)
  float* nll = nullptr;              // [rows], not weighted
  float* z = nullptr;                // [rows], not weighted
  int64_t vocab = 0;
};
using CrossEntropyRows = CrossEntropyRowsOf<float>;

// Losses only; the logits stay.
void cross_entropy(const CrossEntropyRows& rows, int64_t row_begin, int64_t row_end);
void cross_entropy(const CrossEntropyRowsOf<Bfloat16>& rows, int64_t row_begin, int64_t row_end);

// Losses, and the logits are overwritten by their gradient.
void cross_entropy_with_gradient(const CrossEntropyRows& rows, double nll_scale, double z_scale, int64_t row_begin,
                                 int64_t row_end);
void cross_entropy_with_gradient(const CrossEntropyRowsOf<Bfloat16>& rows, double nll_scale, double z_scale,
                                 int64_t row_begin, int64_t row_end);

}  // namespace siamese::kernels
