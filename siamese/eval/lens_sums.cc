#include "siamese/eval/lens_sums.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include "siamese/ops/one_thread.h"
#include "siamese/ops/reduce.h"

namespace siamese::eval {

double effective_depth(const std::vector<runs::PlaceAnalysis>& places) {
  const auto apart = [](const runs::PlaceAnalysis& place) {
    return std::isnan(place.lens.kl) ? place.lens.distance : place.lens.kl;
  };
  double largest = 0;
  for (const runs::PlaceAnalysis& place : places) {
    if (std::isnan(apart(place))) return runs::kNone;
    largest = std::max(largest, apart(place));
  }
  size_t first = places.size();
  while (first > 0 && apart(places[first - 1]) <= kNear * largest) --first;
  return first < places.size() ? static_cast<double>(first) : runs::kNone;
}

Choices::Choices(const at::Tensor& logits)
    : log_shares(at::log_softmax(logits, -1)), shares(log_shares.exp()), first(logits.argmax(-1)) {}

void LensSums::add_choices(const at::Tensor& lens, const Choices& whole, const at::Tensor& targets) {
  const at::Tensor said = at::log_softmax(lens, -1);
  const at::Tensor same = lens.argmax(-1).eq(whole.first);
  const ops::OneThread one_thread;  // sums in one order
  const auto numbers = ops::read_numbers({same.sum().to(at::kDouble),
                                          (whole.shares * (whole.log_shares - said)).sum(-1).to(at::kDouble).sum(),
                                          said.gather(-1, targets.unsqueeze(-1)).to(at::kDouble).sum()});
  rows_ += static_cast<double>(lens.size(0));
  agree_ += numbers[0];
  kl_ += numbers[1];
  loss_ -= numbers[2];
}

void LensSums::add_noise(const at::Tensor& lens, const at::Tensor& whole, const at::Tensor& noise) {
  elements_ += static_cast<double>(noise.numel());
  apart_ += ops::sum_squares(lens - whole);
  squares_ += ops::sum_squares(whole);
  loss_ += ops::sum_squares(lens.narrow(1, 0, noise.size(1)) - noise);
}

runs::LensRecord LensSums::record() const {
  if (rows_ > 0)
    return {.agreement = agree_ / rows_, .kl = kl_ / rows_, .distance = runs::kNone, .loss = loss_ / rows_};
  if (elements_ == 0) return {};
  return {.agreement = runs::kNone,
          .kl = runs::kNone,
          .distance = squares_ > 0 ? apart_ / squares_ : runs::kNone,
          .loss = loss_ / elements_};
}

}  // namespace siamese::eval
