// What a tokenizer file may not say.
#include "tests/text/support.h"

namespace siamese::text {
namespace {

FileParts with_model(const std::string& model) {
  FileParts parts;
  parts.model = model;
  return parts;
}

TEST(TokenizerReader, UnknownPartsByName) {
  FileParts parts;
  parts.normalizer = R"({"type": "Precompiled", "precompiled_charsmap": ""})";
  expect_refused(parts, {"normalizer", "'Precompiled' is not known", "NFC"});
  parts.normalizer = R"({"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "BertNormalizer"}]})";
  expect_refused(parts, {"normalizers[1]", "'BertNormalizer'"});
  parts = {};
  parts.pre_tokenizer = R"({"type": "UnicodeScripts"})";
  expect_refused(parts, {"pre_tokenizer", "'UnicodeScripts'"});
  parts.pre_tokenizer = R"({"type": "ByteLevel", "add_prefix_space": false, "new_option": 1})";
  expect_refused(parts, {"pre_tokenizer", "'new_option' is not known"});
  parts = {};
  parts.post_processor = R"({"type": "RobertaProcessing"})";
  expect_refused(parts, {"post_processor", "'RobertaProcessing'"});
  parts = {};
  parts.decoder = R"({"type": "CTC"})";
  expect_refused(parts, {"decoder", "'CTC'"});
  expect_refused(with_model(R"({"type": "Unigram", "vocab": []})"), {"model", "expected BPE, got 'Unigram'"});
}

TEST(TokenizerReader, ModelsThatAreNotSupported) {
  const auto with = [](const std::string& more) {
    return with_model(R"({"type": "BPE", "vocab": {"a": 0}, "merges": [], )" + more + "}");
  };
  expect_refused(with(R"("dropout": 0.1)"), {"dropout", "0.1"});
  expect_refused(with(R"("end_of_word_suffix": "</w>")"), {"end_of_word_suffix", "</w>"});
  expect_refused(with(R"("continuing_subword_prefix": "##")"), {"continuing_subword_prefix", "##"});
  expect_refused(with(R"("unk_token": "<unk>")"), {"unk_token '<unk>' has no id"});
  expect_refused(with(R"("fuse_unk": 1)"), {"fuse_unk", "expected true or false, got 1"});
}

TEST(TokenizerReader, Vocabularies) {
  expect_refused(with_model(R"({"type": "BPE", "vocab": {"a": 0, "b": 0}, "merges": []})"), {"both have the id 0"});
  expect_refused(with_model(R"({"type": "BPE", "vocab": {"a": -1}, "merges": []})"), {"'a'", "-1"});
  expect_refused(with_model(R"({"type": "BPE", "vocab": {"a": 4294967296}, "merges": []})"), {"4294967296"});
  expect_refused(with_model(R"({"type": "BPE", "vocab": {"a": 16000000}, "merges": []})"), {"1 tokens", "16000000"});
  expect_refused(with_model(R"({"type": "BPE", "vocab": {"a": 0}, "merges": ["b a"]})"), {"merge 1", "'b'"});
  expect_refused(with_model(R"({"type": "BPE", "vocab": {"a": 0}, "merges": ["a a"]})"), {"merge 1", "'aa'"});
  expect_refused(with_model(R"({"type": "BPE", "vocab": {"a": 0}, "merges": ["a"]})"), {"merges[0]", "two tokens"});
  expect_refused(with_model(R"({"type": "BPE", "vocab": {"a": 0}, "merges": [["a", "b", "c"]]})"), {"merges[0]"});
  expect_refused(with_model(R"({"type": "BPE", "merges": []})"), {"'vocab' is missing"});
}

TEST(TokenizerReader, Templates) {
  FileParts parts;
  parts.post_processor = R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
      {"Sequence": {"id": "A", "type_id": 0}}], "pair": [], "special_tokens": {}})";
  expect_refused(parts, {"'<s>' is not in special_tokens"});
  parts.post_processor = R"({"type": "TemplateProcessing", "single": [], "pair": [], "special_tokens": {}})";
  expect_refused(parts, {"the sequence A once"});
}

TEST(TokenizerReader, DecodeRefusesIdsWithoutToken) {
  const Tokenizer tokenizer = FileParts().open();
  const std::vector<TokenId> ids{0, 3};
  try {
    tokenizer.decode(ids);
    FAIL();
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(), "id 3 (number 2) is no token: the vocabulary ends at 2");
  }
}

TEST(TokenizerReader, TextThatIsNotUtf8) {
  const Tokenizer tokenizer = FileParts().open();
  Encoder encoder(tokenizer);
  EXPECT_THROW(encoder.encode("a\xFF"), DataError);
  EXPECT_THROW(encoder.encode("\xED\xA0\x80"), DataError);  // half of a surrogate pair
}

TEST(TokenizerReader, ManyTextsAtAnyNumberOfThreads) {
  const Tokenizer tokenizer = FileParts().open();
  std::vector<std::string> texts;
  for (size_t i = 0; i < 500; ++i) texts.push_back(std::string(i % 7, 'a') + "b");
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  const auto one = encode_all(tokenizer, views, Special::added, 1);
  EXPECT_EQ(encode_all(tokenizer, views, Special::added, 3), one);
  texts[17] = "\xFF";
  const std::vector<std::string_view> bad(texts.begin(), texts.end());
  EXPECT_THROW(encode_all(tokenizer, bad, Special::added, 3), DataError);
}

}  // namespace
}  // namespace siamese::text
