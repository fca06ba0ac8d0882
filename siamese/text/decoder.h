// Ids back into text: ByteLevel, ByteFallback, Fuse, Replace, Strip, Metaspace, in the order of the file. Any other
// step is refused by name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace siamese::text {

class DecoderStep {
 public:
  virtual ~DecoderStep() = default;
  virtual void change(std::vector<std::string>& tokens) const = 0;
};

class Decoder {
 public:
  Decoder() = default;
  // `value` may be null: the tokens with a space between them, as `tokenizers` does.
  Decoder(const nlohmann::json* value, const std::string& where);

  std::string decode(std::vector<std::string> tokens) const;

 private:
  bool there_ = false;
  std::vector<std::unique_ptr<DecoderStep>> steps_;
};

// Valid UTF-8: U+FFFD in the place of every longest part that could begin a character and does not.
std::string repaired_utf8(const std::string& bytes);

}  // namespace siamese::text
