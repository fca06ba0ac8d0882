// tokenizer.json -> Tokenizer.
#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "siamese/base/check.h"
#include "siamese/base/path_kind.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/checksum.h"
#include "siamese/io/message.h"
#include "siamese/io/strict_json.h"
#include "siamese/text/json_part.h"
#include "siamese/text/tokenizer.h"

namespace siamese::text {

using nlohmann::json;

namespace {

using MergeList = std::vector<std::pair<std::string, std::string>>;

TokenId read_id(const json& value, const std::string& where) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() >= kMostIds) {
    throw DataError(fmt::format("{}: expected an id below {}, got {}", where, kMostIds, kind_text(value)));
  }
  return value.get<TokenId>();
}

Vocabulary read_vocabulary(const json& value, const std::string& where) {
  if (!value.is_object()) throw DataError(where + ": expected an object, got " + kind_text(value));
  TokenId size = 0;
  for (const auto& [token, id] : value.items()) {
    size = std::max(size, read_id(id, fmt::format("{}.{}", where, io::in_quotes(token))) + 1);
  }
  // Ids without a token cost memory: a file of a few bytes may not ask for all of it.
  if (size > 16 * value.size() + 65536) {
    throw DataError(fmt::format("{}: {} tokens, but an id of {}", where, value.size(), size - 1));
  }
  Vocabulary vocabulary(size);
  for (const auto& [token, id] : value.items()) {
    if (!vocabulary.add(token, id.get<TokenId>())) {
      throw DataError(fmt::format("{}: the tokens {} and {} both have the id {}", where,
                                  io::in_quotes(*vocabulary.token_of(id.get<TokenId>())), io::in_quotes(token),
                                  id.get<TokenId>()));
    }
  }
  return vocabulary;
}

// "a b", or in newer files ["a", "b"].
MergeList read_merges(JsonPart& model) {
  MergeList merges;
  model.each("merges", false, [&](const json& value, const std::string& where) {
    if (value.is_array() && value.size() == 2 && value[0].is_string() && value[1].is_string()) {
      merges.emplace_back(value[0].get<std::string>(), value[1].get<std::string>());
      return;
    }
    const std::string text = value.is_string() ? value.get<std::string>() : "";
    if (text.starts_with("#version")) return;
    const size_t space = text.find(' ');
    if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
      throw DataError(fmt::format("{}: expected two tokens, got {}", where, kind_text(value)));
    }
    merges.emplace_back(text.substr(0, space), text.substr(space + 1));
  });
  return merges;
}

std::vector<AddedToken> read_added(JsonPart& file) {
  std::vector<AddedToken> tokens;
  file.each("added_tokens", true, [&](const json& value, const std::string& where) {
    JsonPart part(value, where);
    AddedToken token;
    token.id = read_id(part.need("id"), where + ".id");
    token.content = part.text("content");
    token.single_word = part.flag("single_word", false);
    token.lstrip = part.flag("lstrip", false);
    token.rstrip = part.flag("rstrip", false);
    token.special = part.flag("special", false);
    token.normalized = part.flag("normalized", !token.special);
    part.done();
    if (token.content.empty()) part.fail("content: expected a token, got ''");
    tokens.push_back(std::move(token));
  });
  std::sort(tokens.begin(), tokens.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  return tokens;
}

// An added token that the vocabulary has must have the id it has there, and no two the same.
void check_added(const std::vector<AddedToken>& added, const Vocabulary& vocabulary, const std::string& where) {
  for (size_t i = 0; i < added.size(); ++i) {
    const auto fail = [&](const std::string& what) {
      throw DataError(fmt::format("{}: the added token {} has the id {}, but {}", where,
                                  io::in_quotes(added[i].content), added[i].id, what));
    };
    const auto id = vocabulary.id_of(added[i].content);
    if (id && *id != added[i].id) fail(fmt::format("in the vocabulary it has {}", *id));
    const std::string* const other = vocabulary.token_of(added[i].id);
    if (other != nullptr && *other != added[i].content) fail("so has " + io::in_quotes(*other));
    if (i > 0 && added[i].id == added[i - 1].id) fail("so has " + io::in_quotes(added[i - 1].content));
  }
  std::vector<std::string_view> contents;
  for (const AddedToken& token : added) contents.push_back(token.content);
  std::sort(contents.begin(), contents.end());
  const auto twice = std::adjacent_find(contents.begin(), contents.end());
  if (twice != contents.end()) {
    throw DataError(fmt::format("{}: {} stands twice among the added tokens", where, io::in_quotes(*twice)));
  }
}

}  // namespace

class TokenizerReader {
 public:
  static Tokenizer read(std::string_view text, const std::string& name) {
    const json root = io::read_json(text, name);
    JsonPart file(root, name);
    file.ignore({"version", "truncation", "padding"});
    JsonPart model(file.need("model"), name + ": model");
    BpeOptions options = read_options(model);
    Vocabulary vocabulary = read_vocabulary(model.need("vocab"), name + ": model.vocab");
    const MergeList merges = read_merges(model);
    model.done();

    PreTokenizer pre_tokenizer(file.find("pre_tokenizer"), name + ": pre_tokenizer");
    if (options.byte_fallback) pre_tokenizer.give_characters();
    options.bytes = pre_tokenizer.gives_bytes();
    Bpe bpe(vocabulary, merges, options, name + ": model");
    Tokenizer tokenizer(std::move(vocabulary), std::move(bpe));
    tokenizer.merges_ = merges.size();
    tokenizer.pre_tokenizer_ = std::move(pre_tokenizer);
    tokenizer.normalizer_ = Normalizer(file.find("normalizer"), name + ": normalizer");
    tokenizer.post_processor_ = PostProcessor(file.find("post_processor"), name + ": post_processor");
    tokenizer.decoder_ = Decoder(file.find("decoder"), name + ": decoder");
    tokenizer.added_ = read_added(file);
    file.done();
    check_added(tokenizer.added_, tokenizer.vocabulary_, name);
    find_added(tokenizer);
    for (const auto* const side : {&tokenizer.post_processor_.before(), &tokenizer.post_processor_.after()}) {
      for (const TokenId id : *side) {
        if (tokenizer.token_of(id) == nullptr) {
          throw DataError(fmt::format("{}: post_processor: the id {} is no token", name, id));
        }
      }
    }
    tokenizer.hash_ = io::checksum(text);
    return tokenizer;
  }

 private:
  static BpeOptions read_options(JsonPart& model) {
    // The oldest files do not name their model; they are BPE when they have merges.
    const std::string type = model.text("type", model.find("merges") != nullptr ? "BPE" : "");
    if (type != "BPE") model.fail("type: expected BPE, got " + io::in_quotes(type));
    if (const auto* const dropout = model.find("dropout"); dropout != nullptr && *dropout != 0.0) {
      model.fail("dropout: expected none (ids would be drawn), got " + kind_text(*dropout));
    }
    for (const char* const key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (const std::string value = model.text(key, ""); !value.empty()) {
        model.fail(fmt::format("{}: {} is not supported", key, io::in_quotes(value)));
      }
    }
    BpeOptions options;
    options.unk = model.text("unk_token", "");
    options.fuse_unk = model.flag("fuse_unk", false);
    options.byte_fallback = model.flag("byte_fallback", false);
    options.ignore_merges = model.flag("ignore_merges", false);
    return options;
  }

  static void find_added(Tokenizer& tokenizer) {
    std::vector<AddedTokenFinder::Entry> before;
    std::vector<AddedTokenFinder::Entry> after;
    for (AddedToken& token : tokenizer.added_) {
      token.decoded = token.content;
      if (!token.normalized) {
        before.push_back({token.content, &token});
        continue;
      }
      std::string buffer;
      std::string content(tokenizer.normalizer_.apply(token.content, buffer));
      token.decoded = content;
      if (!content.empty()) after.push_back({std::move(content), &token});
    }
    tokenizer.before_normalizer_ = AddedTokenFinder(before);
    tokenizer.after_normalizer_ = AddedTokenFinder(after);
  }
};

Tokenizer Tokenizer::parse(std::string_view text, const std::string& name) { return TokenizerReader::read(text, name); }

Tokenizer Tokenizer::open(const std::filesystem::path& path) {
  const auto file = is_folder(path) ? path / "tokenizer.json" : path;
  return parse(io::read_file(file), file.string());
}

}  // namespace siamese::text
