// The splitting patterns that nearly all byte-level tokenizers use, written out as loops: the same pieces as their
// regular expressions give, several times faster. Which expression means which loop stands in scan.cc.
#pragma once

#include <optional>
#include <string_view>

#include "siamese/base/enum_text.h"

namespace siamese::text {

// gpt2: what a ByteLevel step splits by. cl100k: GPT-4, Llama 3, dolma2, with numbers of three digits; qwen: of one.
enum class Scan { gpt2, cl100k, qwen };

std::optional<Scan> scan_of(std::string_view pattern);
std::string_view pattern_of(Scan scan);

// The end of the piece that begins at `at`; at < end, valid UTF-8. The pieces cover the text without a gap.
const char* next_piece(Scan scan, const char* at, const char* end);

}  // namespace siamese::text

namespace siamese {

template <>
struct EnumText<text::Scan> {
  static constexpr EnumNames<text::Scan, 3> names{
      {{text::Scan::gpt2, "gpt2"}, {text::Scan::cl100k, "cl100k"}, {text::Scan::qwen, "qwen"}}};
};

}  // namespace siamese
