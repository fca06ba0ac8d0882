// Cross-entropy and z-loss of rows of logits, and their gradient in place of the logits. With n = logsumexp(logits):
//   nll = n - logits[target]     z = n^2
//   d (nll_scale * nll + z_scale * z) / d logits = (nll_scale + 2 z_scale n) softmax(logits) - nll_scale onehot(target)
// A row's result does not depend on the range it is computed in.
#pragma once

#include <cstdint>

namespace siamese::kernels {

struct CrossEntropyRows {
  float* logits = nullptr;           // [rows, vocab]; the gradient's place when `gradient`
  const int64_t* targets = nullptr;  // [rows], each in [0, vocab)
  const float* weights = nullptr;    // [rows], factor of both scales, or null (1)
  float* nll = nullptr;              // [rows], not weighted
  float* z = nullptr;                // [rows], not weighted
  int64_t vocab = 0;
};

// Losses only; the logits stay.
void cross_entropy(const CrossEntropyRows& rows, int64_t row_begin, int64_t row_end);

// Losses, and the logits are overwritten by their gradient.
void cross_entropy_with_gradient(const CrossEntropyRows& rows, double nll_scale, double z_scale, int64_t row_begin,
                                 int64_t row_end);

}  // namespace siamese::kernels
