// Text <-> token ids, without any data file: what `generate` and exact-match evaluation need.
//   arithmetic: 16 characters (data/arithmetic.h)      text: bytes, id = byte value, vocab 256
//   tokens, random: no text; ids are written as numbers ("15496 995")
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "siamese/data/config.h"

namespace siamese::data {

// What an id without a character decodes to: U+FFFD.
inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

class Codec {
 public:
  virtual ~Codec() = default;
  // Ids are in [0, vocab()); 0 = any, the model decides (tokens).
  virtual int64_t vocab() const = 0;
  // False when "text" is a list of numbers.
  virtual bool is_text() const = 0;
  // UsageError naming the character (or word) that has no id, and where it stands.
  virtual std::vector<int64_t> encode(std::string_view text) const = 0;
  // An id outside the vocabulary (a model may have more rows than the codec) becomes kReplacement.
  virtual std::string decode(std::span<const int64_t> ids) const = 0;
};

std::unique_ptr<Codec> make_codec(const DataConfig& config);

}  // namespace siamese::data
