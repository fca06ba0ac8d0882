// What a lens reads, beside what the whole model says of the same tokens: sums over many of them.
//   agreement = share of rows with the same largest logit;   kl = mean of KL(softmax(whole) || softmax(lens)), nats
//   loss      = mean of -log softmax(lens)[target];          images of a dit: distance and mean squared error instead
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "siamese/runs/analysis_record.h"

namespace siamese::eval {

// The first place from which on the lens of all streams stays near the output: its kl (of a dit its distance) is at
// most kNear of the largest of all places, there and at every place after it. kNone where no lens read anything.
inline constexpr double kNear = 0.1;
double effective_depth(const std::vector<runs::PlaceAnalysis>& places);

// What logits [rows, choices] say.
struct Choices {
  explicit Choices(const at::Tensor& logits);

  at::Tensor log_shares, shares;
  at::Tensor first;  // int64 [rows]: the largest
};

class LensSums {
 public:
  // Logits [rows, choices] of the lens, what the whole model says, targets int64 [rows].
  void add_choices(const at::Tensor& lens, const Choices& whole, const at::Tensor& targets);
  // Outputs of a dit [rows, channels of the output, ...], and the noise, which is what the first channels shall be.
  void add_noise(const at::Tensor& lens, const at::Tensor& whole, const at::Tensor& noise);

  runs::LensRecord record() const;

 private:
  double rows_ = 0, agree_ = 0, kl_ = 0, loss_ = 0;
  double elements_ = 0, apart_ = 0, squares_ = 0;  // of a dit
};

}  // namespace siamese::eval
