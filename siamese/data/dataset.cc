#include "siamese/data/dataset.h"

#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/data/arithmetic.h"
#include "siamese/data/codec.h"
#include "siamese/data/mixture.h"
#include "siamese/data/random_tokens.h"
#include "siamese/data/text.h"
#include "siamese/data/tokens.h"

namespace siamese::data {

std::unique_ptr<Dataset> open_dataset(const DataConfig& config, Split split, int64_t context, int64_t vocab,
                                      uint64_t seed) {
  check(config);
  if (sizes_of(config).images) {
    throw UsageError(fmt::format("data.source: expected arithmetic, text, tokens or random for a model of text, got {}",
                                 enum_text(config.source)));
  }
  if (context < 1) throw UsageError(fmt::format("model.context: expected at least 1, got {}", context));
  const int64_t needed = std::max<int64_t>(1, make_codec(config)->vocab());
  if (vocab < needed) {
    throw UsageError(fmt::format("model.vocab: expected at least {} for data.source={}, got {}", needed,
                                 enum_text(config.source), vocab));
  }
  if (!config.mix.empty()) return mixed_dataset(config, split, context, vocab, seed);
  switch (config.source) {
    case Source::arithmetic:
      return arithmetic_dataset(config, split, context, seed);
    case Source::text:
      return text_dataset(config, split, context, seed);
    case Source::tokens:
      return token_dataset(config, split, context, vocab, seed);
    default:
      break;
  }
  return random_tokens(vocab, split == Split::train ? seed : ~seed);
}

}  // namespace siamese::data
