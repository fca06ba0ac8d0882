#include "siamese/text/post_processor.h"

#include <map>

#include <nlohmann/json.hpp>

#include "siamese/io/message.h"
#include "siamese/text/json_part.h"

namespace siamese::text {
namespace {

std::map<std::string, std::vector<TokenId>> special_ids(JsonPart& part) {
  std::map<std::string, std::vector<TokenId>> all;
  const auto* const tokens = part.find("special_tokens");
  if (tokens == nullptr) return all;
  if (!tokens->is_object()) part.fail("special_tokens: expected an object, got " + kind_text(*tokens));
  for (const auto& [name, value] : tokens->items()) {
    JsonPart token(value, part.where() + ".special_tokens." + io::in_quotes(name));
    token.ignore({"id", "tokens"});
    token.each("ids", false, [&, &name = name](const nlohmann::json& id, const std::string& where) {
      if (!id.is_number_unsigned() || id.get<uint64_t>() >= kMostIds) {
        token.fail(where + ": expected a token id, got " + kind_text(id));
      }
      all[name].push_back(id.get<TokenId>());
    });
    token.done();
  }
  return all;
}

}  // namespace

void PostProcessor::add_template(const nlohmann::json& value, const std::string& where) {
  JsonPart part(value, where);
  part.ignore({"type", "pair"});
  const auto ids = special_ids(part);
  std::vector<TokenId> before;
  std::vector<TokenId> after;
  int sequences = 0;
  part.each("single", false, [&](const nlohmann::json& piece, const std::string& name) {
    JsonPart one(piece, name);
    if (const auto* const special = one.find("SpecialToken")) {
      JsonPart token(*special, name + ".SpecialToken");
      token.ignore({"type_id"});
      const auto found = ids.find(token.text("id"));
      if (found == ids.end()) token.fail("id: " + io::in_quotes(token.text("id")) + " is not in special_tokens");
      auto& side = sequences == 0 ? before : after;
      side.insert(side.end(), found->second.begin(), found->second.end());
    } else {
      JsonPart sequence(one.need("Sequence"), name + ".Sequence");
      sequence.ignore({"type_id"});
      if (sequence.text("id") != "A") sequence.fail("id: expected A, got " + io::in_quotes(sequence.text("id")));
      ++sequences;
    }
    one.done();
  });
  if (sequences != 1) part.fail("single: expected the sequence A once, got it " + std::to_string(sequences) + " times");
  part.done();
  before_.insert(before_.begin(), before.begin(), before.end());
  after_.insert(after_.end(), after.begin(), after.end());
}

void PostProcessor::add(const nlohmann::json& value, const std::string& where) {
  JsonPart part(value, where);
  const std::string type = part.text("type");
  if (type == "TemplateProcessing") return add_template(value, where);
  if (type == "Sequence") {
    part.each("processors", false, [&](const nlohmann::json& step, const std::string& name) { add(step, name); });
  } else if (type == "ByteLevel") {
    part.ignore({"add_prefix_space", "trim_offsets", "use_regex"});
  } else {
    part.fail("the post-processor " + io::in_quotes(type) +
              " is not known; known: TemplateProcessing, ByteLevel, Sequence");
  }
  part.done();
}

PostProcessor::PostProcessor(const nlohmann::json* value, const std::string& where) {
  if (value != nullptr) add(*value, where);
}

}  // namespace siamese::text
