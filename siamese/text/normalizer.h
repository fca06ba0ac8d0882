// What a tokenizer file does to text before it splits it: NFC, NFD, NFKC, NFKD, Lowercase, Strip, Prepend, Replace, in
// the order of the file. Any other step is refused by name.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace siamese::text {

class NormalizerStep {
 public:
  virtual ~NormalizerStep() = default;
  // False when nothing changes; then `out` may hold anything.
  virtual bool change(std::string_view text, std::string& out) const = 0;
};

class Normalizer {
 public:
  Normalizer() = default;
  // `value` may be null: nothing is done.
  Normalizer(const nlohmann::json* value, const std::string& where);

  // The text as the steps make it: `text` itself, or in `buffer`.
  std::string_view apply(std::string_view text, std::string& buffer) const;

 private:
  std::vector<std::unique_ptr<NormalizerStep>> steps_;
};

}  // namespace siamese::text
