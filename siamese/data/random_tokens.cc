#include "siamese/data/random_tokens.h"

#include <algorithm>

#include "siamese/base/random.h"

namespace siamese::data {
namespace {

class RandomTokens : public Dataset {
 public:
  RandomTokens(int64_t vocab, uint64_t seed) : vocab_(vocab), seed_(seed) {}

  int64_t vocab() const override { return vocab_; }
  int64_t samples() const override { return 0; }
  void sample(uint64_t position, std::span<int64_t> tokens, std::span<float> weights) const override {
    for (size_t i = 0; i < tokens.size(); ++i) {
      tokens[i] = static_cast<int64_t>(random_below(static_cast<uint64_t>(vocab_), seed_, position, i));
    }
    std::fill(weights.begin(), weights.end(), 1.0F);
  }
  std::string describe() const override { return "random tokens"; }

 private:
  int64_t vocab_;
  uint64_t seed_;
};

}  // namespace

std::unique_ptr<Dataset> random_tokens(int64_t vocab, uint64_t seed) {
  return std::make_unique<RandomTokens>(vocab, seed);
}

}  // namespace siamese::data
