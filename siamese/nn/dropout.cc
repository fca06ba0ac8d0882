#include "siamese/nn/dropout.h"

#include <algorithm>
#include <cmath>
#include <string>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "siamese/base/check.h"
#include "siamese/base/random.h"

namespace siamese::nn {

at::Tensor Dropout::dropped(at::IntArrayRef shape, at::Device device) const {
  if (!(chance >= 0 && chance < 1)) {
    throw UsageError("dropout: expected a share from 0 to below 1, got " + std::to_string(chance));
  }
  const at::Tensor mask = at::empty(shape, at::kBool);
  bool* const data = mask.mutable_data_ptr<bool>();
  const int64_t each = mask.numel() / std::max<int64_t>(1, shape[0]);
  // A draw has four words, one for each of four elements in a row.
  constexpr int64_t kWords = 4;
  const int64_t draws = (each + kWords - 1) / kWords;
  const auto below = static_cast<uint64_t>(std::ceil(std::ldexp(chance, 32)));
  at::parallel_for(0, mask.numel() == 0 ? 0 : shape[0] * draws, 1024, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t sample = i / draws, draw = i % draws;
      const auto words = random_words(key, first_position + static_cast<uint64_t>(sample), static_cast<uint64_t>(draw));
      const int64_t first = draw * kWords;
      for (int64_t word = 0; word < std::min(kWords, each - first); ++word) {
        data[sample * each + first + word] = words[static_cast<size_t>(word)] < below;
      }
    }
  });
  return mask.to(device);
}

at::Tensor Dropout::operator()(const at::Tensor& x) const {
  if (!acts()) return x;
  return x.masked_fill(dropped(x.sizes(), x.device()), 0) * (1 / (1 - chance));
}

}  // namespace siamese::nn
