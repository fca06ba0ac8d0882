#include "siamese/eval/sequence_batch.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "siamese/base/check.h"

namespace siamese::eval {

SequenceBatch::SequenceBatch(const models::LanguageModel& model)
    : model_(model),
      cache_(model.make_cache(static_cast<int64_t>(kMost), model.config().context,
                              model.config().positions == models::Positions::rope)) {}

models::LmCache SequenceBatch::first(size_t count) const {
  models::LmCache some{.layers = {},
                       .past = {cache_.past.begin(), cache_.past.begin() + static_cast<std::ptrdiff_t>(count)},
                       .capacity = cache_.capacity,
                       .slides = cache_.slides};
  for (const nn::KeyValues& layer : cache_.layers) {
    const auto rows = static_cast<int64_t>(count);
    some.layers.push_back({layer.keys.narrow(0, 0, rows), layer.values.narrow(0, 0, rows)});
  }
  return some;
}

at::Tensor SequenceBatch::join(const std::vector<int64_t>& prompt) {
  SIAMESE_INVARIANT(!full());
  const at::Tensor tokens = at::empty({1, static_cast<int64_t>(prompt.size())}, at::kLong);
  std::copy(prompt.begin(), prompt.end(), tokens.mutable_data_ptr<int64_t>());
  cache_.past[size_] = 0;
  models::LmCache own = cache_.sequence(size_);
  const at::Tensor states = model_.hidden(tokens, {}, &own)[0];
  cache_.past[size_] = own.past[0];
  ++size_;
  return states;
}

at::Tensor SequenceBatch::advance(const std::vector<int64_t>& tokens) {
  SIAMESE_INVARIANT(tokens.size() == size_ && size_ > 0);
  const at::Tensor next = at::empty({static_cast<int64_t>(size_), 1}, at::kLong);
  std::copy(tokens.begin(), tokens.end(), next.mutable_data_ptr<int64_t>());
  models::LmCache active = first(size_);
  const at::Tensor logits = model_.logits(model_.hidden(next, {}, &active).select(1, 0));
  std::copy(active.past.begin(), active.past.end(), cache_.past.begin());
  return logits;
}

void SequenceBatch::leave(size_t index) {
  SIAMESE_INVARIANT(index < size_);
  --size_;
  if (index == size_) return;
  const int64_t held = std::min(cache_.past[size_], cache_.capacity);
  for (const nn::KeyValues& layer : cache_.layers) {
    for (const at::Tensor& table : {layer.keys, layer.values}) {
      table[static_cast<int64_t>(index)]
          .narrow(1, 0, held)
          .copy_(table[static_cast<int64_t>(size_)].narrow(1, 0, held));
    }
  }
  cache_.past[index] = cache_.past[size_];
}

bool SequenceBatch::ended(size_t index) const {
  return !cache_.slides && cache_.past[index] == model_.config().context;
}

}  // namespace siamese::eval
