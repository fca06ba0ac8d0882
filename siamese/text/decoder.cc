#include "siamese/text/decoder.h"

#include <optional>

#include <nlohmann/json.hpp>

#include "siamese/base/join.h"
#include "siamese/base/utf8.h"
#include "siamese/io/message.h"
#include "siamese/text/byte_level.h"
#include "siamese/text/characters.h"
#include "siamese/text/json_part.h"
#include "siamese/text/pattern.h"

namespace siamese::text {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

class ByteLevelDecoder : public DecoderStep {
 public:
  void change(std::vector<std::string>& tokens) const override {
    std::string bytes;
    for (const std::string& token : tokens) bytes += bytes_of_token(token).value_or(token);
    tokens = {repaired_utf8(bytes)};
  }
};

class ByteFallbackDecoder : public DecoderStep {
 public:
  void change(std::vector<std::string>& tokens) const override {
    std::vector<std::string> out;
    std::string bytes;
    const auto flush = [&] {
      if (bytes.empty()) return;
      if (first_invalid_utf8(std::as_bytes(std::span(bytes)))) {
        out.insert(out.end(), bytes.size(), std::string(kReplacement));
      } else {
        out.push_back(bytes);
      }
      bytes.clear();
    };
    for (std::string& token : tokens) {
      if (const auto byte = byte_of(token)) {
        bytes += *byte;
        continue;
      }
      flush();
      out.push_back(std::move(token));
    }
    flush();
    tokens = std::move(out);
  }

 private:
  static std::optional<char> byte_of(const std::string& token) {
    if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
    int value = 0;
    for (const char c : token.substr(3, 2)) {
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                               : -1;
      if (digit < 0) return std::nullopt;
      value = value * 16 + digit;
    }
    return static_cast<char>(value);
  }
};

class FuseDecoder : public DecoderStep {
 public:
  void change(std::vector<std::string>& tokens) const override { tokens = {join(tokens, "")}; }
};

class ReplaceDecoder : public DecoderStep {
 public:
  ReplaceDecoder(Pattern pattern, std::string content) : pattern_(std::move(pattern)), content_(std::move(content)) {}
  void change(std::vector<std::string>& tokens) const override {
    std::string changed;
    for (std::string& token : tokens) {
      if (replace_all(pattern_, content_, token, changed)) token = changed;
    }
  }

 private:
  Pattern pattern_;
  std::string content_;
};

class StripDecoder : public DecoderStep {
 public:
  StripDecoder(std::string content, int64_t start, int64_t stop)
      : content_(std::move(content)), start_(start), stop_(stop) {}
  void change(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) {
      std::string_view kept = token;
      for (int64_t i = 0; i < start_ && kept.starts_with(content_); ++i) kept.remove_prefix(content_.size());
      for (int64_t i = 0; i < stop_ && kept.ends_with(content_); ++i) kept.remove_suffix(content_.size());
      if (kept.size() != token.size()) token = std::string(kept);
    }
  }

 private:
  std::string content_;
  int64_t start_;
  int64_t stop_;
};

class MetaspaceDecoder : public DecoderStep {
 public:
  MetaspaceDecoder(std::string mark, bool prepends) : mark_(std::move(mark)), prepends_(prepends) {}
  void change(std::vector<std::string>& tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i) {
      const std::string_view space = i == 0 && prepends_ ? "" : " ";
      std::string out;
      size_t copied = 0;
      for (size_t at; (at = tokens[i].find(mark_, copied)) != std::string::npos; copied = at + mark_.size()) {
        out.append(tokens[i], copied, at - copied).append(space);
      }
      tokens[i] = out.append(tokens[i], copied, std::string::npos);
    }
  }

 private:
  std::string mark_;
  bool prepends_;
};

void add_steps(const nlohmann::json& value, const std::string& where,
               std::vector<std::unique_ptr<DecoderStep>>& steps) {
  JsonPart part(value, where);
  const std::string type = part.text("type");
  constexpr int64_t kMost = 1 << 20;
  if (type == "Sequence") {
    part.each("decoders", false,
              [&](const nlohmann::json& step, const std::string& name) { add_steps(step, name, steps); });
  } else if (type == "ByteLevel") {
    part.ignore({"add_prefix_space", "trim_offsets", "use_regex"});
    steps.push_back(std::make_unique<ByteLevelDecoder>());
  } else if (type == "ByteFallback") {
    steps.push_back(std::make_unique<ByteFallbackDecoder>());
  } else if (type == "Fuse") {
    steps.push_back(std::make_unique<FuseDecoder>());
  } else if (type == "Replace") {
    Pattern pattern(part.need("pattern"), where + ".pattern");
    steps.push_back(std::make_unique<ReplaceDecoder>(std::move(pattern), part.text("content")));
  } else if (type == "Strip") {
    const std::string content = part.character("content", " ");
    const int64_t start = part.number("start", 0, kMost);
    steps.push_back(std::make_unique<StripDecoder>(content, start, part.number("stop", 0, kMost)));
  } else if (type == "Metaspace") {
    const std::string mark = part.character("replacement", "\xE2\x96\x81");
    part.ignore({"str_rep", "split"});
    const bool prefix = part.flag("add_prefix_space", true);
    const std::string scheme = part.text("prepend_scheme", prefix ? "always" : "never");
    steps.push_back(std::make_unique<MetaspaceDecoder>(mark, scheme != "never"));
  } else {
    part.fail("the decoder " + io::in_quotes(type) +
              " is not known; known: ByteLevel, ByteFallback, Fuse, Replace, Strip, Metaspace, Sequence");
  }
  part.done();
}

// Bytes at the front of `text` that begin a character but are none: at least 1.
size_t broken_part(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC2 ? 2 : 1;
  if (length == 1 || first > 0xF4) return 1;
  for (size_t i = 1; i < length; ++i) {
    if (i >= text.size() || (byte(i) & 0xC0) != 0x80) return i;
    if (i > 1) continue;
    const bool wrong = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) > 0x9F) ||
                       (first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) > 0x8F);
    if (wrong) return 1;
  }
  return 1;
}

}  // namespace

std::string repaired_utf8(const std::string& bytes) {
  auto wrong = first_invalid_utf8(std::as_bytes(std::span(bytes)));
  if (!wrong) return bytes;
  std::string out;
  std::string_view rest = bytes;
  while (wrong) {
    out.append(rest.substr(0, *wrong)).append(kReplacement);
    rest.remove_prefix(*wrong);
    rest.remove_prefix(broken_part(rest));
    wrong = first_invalid_utf8(std::as_bytes(std::span(rest)));
  }
  return out.append(rest);
}

Decoder::Decoder(const nlohmann::json* value, const std::string& where) : there_(value != nullptr) {
  if (there_) add_steps(*value, where, steps_);
}

std::string Decoder::decode(std::vector<std::string> tokens) const {
  for (const auto& step : steps_) step->change(tokens);
  return join(tokens, there_ ? "" : " ");
}

}  // namespace siamese::text
