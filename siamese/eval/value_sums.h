// Statistics of tensors that come one after the other, in sums that do not grow: what the streams and branches of a
// model look like over more tokens than fit into memory at once. Sums are doubles, in an order that does not depend on
// threads.
#pragma once

#include <array>
#include <cstdint>

#include <ATen/core/Tensor.h>

#include "siamese/runs/analysis_record.h"

namespace siamese::eval {

// [..., width] -> [rows, width], float32 in row-major order on the CPU.
at::Tensor float_rows(const at::Tensor& values);

// norm = mean over rows of |x|;  rms = sqrt(E x^2);  max = max |x|;  kurtosis = E (x - E x)^4 / (E (x - E x)^2)^2
class ValueSums {
 public:
  void add(const at::Tensor& values);  // [..., width]
  runs::ValueStatistics statistics() const;

 private:
  double count_ = 0, rows_ = 0, norms_ = 0, max_ = 0;
  std::array<double, 4> powers_{};  // sums of x, x^2, x^3, x^4
};

// The mean over rows of a . b / (|a| |b|); a row of zeros has the cosine 0.
class CosineSums {
 public:
  void add(const at::Tensor& a, const at::Tensor& b);  // both [..., width]
  double mean() const;

 private:
  double rows_ = 0, sum_ = 0;
};

// The mean over samples of |mean_t x_t|^2 / mean_t |x_t|^2: 1 where all tokens of a sample are the same, 0 where they
// cancel out.
class TokenMeanSums {
 public:
  void add(const at::Tensor& values);  // [samples, tokens, width]
  double mean() const;

 private:
  double samples_ = 0, sum_ = 0;
};

}  // namespace siamese::eval
