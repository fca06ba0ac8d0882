#include "siamese/eval/stream_use.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "siamese/ops/one_thread.h"

namespace siamese::eval {

namespace stream_use_detail {

double summed_norms(const at::Tensor& rows) { return rows.norm(2, -1).to(at::kDouble).sum().item<double>(); }

void add_to(std::vector<double>& sums, const std::vector<double>& more) {
  sums.resize(std::max(sums.size(), more.size()), 0.0);
  for (size_t i = 0; i < more.size(); ++i) sums[i] += more[i];
}

}  // namespace stream_use_detail

StreamUse::StreamUse(const models::Model& model) : model_(model), places_(model.stack().sites().size() + 1) {}

void StreamUse::add(const GivenBatch& batch) {
  const c10::NoGradGuard no_grad;
  model_.state(batch.given, {.intervention = this});
}

residual::Streams StreamUse::between(size_t next, residual::Streams streams) {
  const residual::Streams now = residual::flush(streams);
  OfPlace& place = places_[next];
  const bool closes = next + 1 == places_.size();
  const auto given = [&](const residual::Streams& from) {
    return closes ? model_.stack().topology().close(from)
                  : model_.stack().junction(next).read(from, nullptr).branch_input;
  };
  const int64_t tokens = now[0].numel() / now[0].size(-1);
  std::vector<double> apart;
  if (now.list.size() > 1) {
    const at::Tensor whole = given(now);
    for (size_t i = 0; i < now.list.size(); ++i) {
      const at::Tensor difference = whole - given(residual::without(now, i));
      const ops::OneThread one_thread;  // sums in one order
      apart.push_back(stream_use_detail::summed_norms(difference));
    }
  }
  stream_use_detail::add_to(place.apart, apart);
  see_weights(closes ? model_.stack().topology().weights(now) : model_.stack().junction(next).weights(now),
              static_cast<double>(tokens), place);
  place.tokens += static_cast<double>(tokens);
  return streams;
}

void StreamUse::see_weights(const residual::StreamWeights& weights, double tokens, OfPlace& place) {
  const ops::OneThread one_thread;
  // The same for all tokens, or one for each: the mean counts as often as there are tokens.
  if (weights.input.defined()) {
    const at::Tensor rows = weights.input.reshape({-1, weights.input.size(-1)}).to(at::kDouble);
    const at::Tensor mean = (rows.mean(0) * tokens).to(at::kCPU).contiguous();
    const double* const data = mean.const_data_ptr<double>();
    stream_use_detail::add_to(place.weights, {data, data + mean.numel()});
  }
  if (!weights.mix.defined()) return;
  const int64_t n = weights.mix.size(-1);
  const at::Tensor apart = weights.mix.to(at::kDouble) - at::eye(n, weights.mix.options().dtype(at::kDouble));
  const at::Tensor distances = apart.square().sum({-2, -1}).sqrt() / std::sqrt(static_cast<double>(n));
  place.mix += distances.mean().item<double>() * tokens;
  place.mixes = true;
}

void StreamUse::fill(runs::AnalysisRecord& record) const {
  for (size_t i = 0; i < record.places.size(); ++i) {
    runs::PlaceAnalysis& place = record.places[i];
    const OfPlace& seen = places_[i];
    const double all = std::accumulate(seen.apart.begin(), seen.apart.end(), 0.0);
    for (size_t k = 0; k < place.streams.size(); ++k) {
      if (k < seen.apart.size() && all > 0) place.streams[k].share = seen.apart[k] / all;
      if (k < seen.weights.size()) place.streams[k].weight = seen.weights[k] / seen.tokens;
    }
    if (place.branch && seen.mixes) place.branch->mix_distance = seen.mix / seen.tokens;
  }
}

std::vector<models::NamedTensor> StreamUse::tensors() const {
  size_t most = 0, rows = 0;
  for (size_t i = 0; i < places_.size(); ++i) {
    most = std::max(most, places_[i].weights.size());
    if (!places_[i].weights.empty()) rows = i + 1;
  }
  if (most == 0) return {};
  at::Tensor map = at::full({static_cast<int64_t>(rows), static_cast<int64_t>(most)}, runs::kNone, at::kFloat);
  for (size_t i = 0; i < rows; ++i) {
    for (size_t k = 0; k < places_[i].weights.size(); ++k) {
      map[static_cast<int64_t>(i)][static_cast<int64_t>(k)] = places_[i].weights[k] / places_[i].tokens;
    }
  }
  return {{"depth/weights", map}};
}

}  // namespace siamese::eval
