#include "siamese/text/tokenizer_text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "siamese/io/strict_json.h"

namespace siamese::text {
namespace {

std::string as_json(std::string_view text) { return io::json_text(nlohmann::json(text)); }

}  // namespace

std::string byte_level_tokenizer_text(const std::vector<std::string>& tokens,
                                      const std::vector<std::pair<std::string, std::string>>& merges, size_t special,
                                      Scan split) {
  std::string out = "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n  \"added_tokens\": [";
  for (size_t id = 0; id < special; ++id) {
    out += fmt::format(
        "{}\n    {{\"id\": {}, \"content\": {}, \"single_word\": false, \"lstrip\": false, \"rstrip\": false, "
        "\"normalized\": false, \"special\": true}}",
        id == 0 ? "" : ",", id, as_json(tokens[id]));
  }
  out += fmt::format(
      "\n  ],\n  \"normalizer\": null,\n"
      "  \"pre_tokenizer\": {{\"type\": \"Sequence\", \"pretokenizers\": [\n"
      "    {{\"type\": \"Split\", \"pattern\": {{\"Regex\": {}}}, \"behavior\": \"Isolated\", \"invert\": false}},\n"
      "    {{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true, \"use_regex\": false}}\n"
      "  ]}},\n"
      "  \"post_processor\": null,\n"
      "  \"decoder\": {{\"type\": \"ByteLevel\", \"add_prefix_space\": true, \"trim_offsets\": true, \"use_regex\": "
      "true}},\n"
      "  \"model\": {{\n    \"type\": \"BPE\",\n    \"dropout\": null,\n    \"unk_token\": null,\n"
      "    \"continuing_subword_prefix\": null,\n    \"end_of_word_suffix\": null,\n    \"fuse_unk\": false,\n"
      "    \"byte_fallback\": false,\n    \"ignore_merges\": false,\n    \"vocab\": {{",
      as_json(pattern_of(split)));
  for (size_t id = 0; id < tokens.size(); ++id) {
    out += fmt::format("{}\n      {}: {}", id == 0 ? "" : ",", as_json(tokens[id]), id);
  }
  out += "\n    },\n    \"merges\": [";
  for (size_t i = 0; i < merges.size(); ++i) {
    out += fmt::format("{}\n      [{}, {}]", i == 0 ? "" : ",", as_json(merges[i].first), as_json(merges[i].second));
  }
  return out + "\n    ]\n  }\n}\n";
}

}  // namespace siamese::text
