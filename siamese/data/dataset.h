// Samples of `context` + 1 tokens by position. A sample is a pure function of (seed, position): a run that has consumed
// n samples goes on with position n, on any number of threads.
//   tokens  [context + 1]   model input tokens[0 .. context), targets tokens[1 .. context + 1)
//   weights [context]       1 where target tokens[i + 1] counts in the loss, else 0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "siamese/data/config.h"

namespace siamese::data {

// `test` is what training never sees (the validation files of text and tokens).
enum class Split { train, test };

class Dataset {
 public:
  virtual ~Dataset() = default;
  // Tokens are in [0, vocab()).
  virtual int64_t vocab() const = 0;
  // Windows per epoch; 0 = endless. Positions go on past an epoch.
  virtual int64_t samples() const = 0;
  // Safe to call from several threads.
  virtual void sample(uint64_t position, std::span<int64_t> tokens, std::span<float> weights) const = 0;
  // Before which tokens of the sample, 1 to context, another document begins. nullopt: documents do not matter.
  virtual std::optional<std::vector<int64_t>> borders(uint64_t /*position*/) const { return std::nullopt; }
  // One line for the log.
  virtual std::string describe() const = 0;
};

// `vocab`: rows of the model's embedding; a token that has none is refused.
// Training order: a new permutation of all windows each epoch. Test order: as written, from the start again each epoch.
std::unique_ptr<Dataset> open_dataset(const DataConfig& config, Split split, int64_t context, int64_t vocab,
                                      uint64_t seed);

}  // namespace siamese::data
