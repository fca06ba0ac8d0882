// The verbs tokenizer and prepare, as a user runs them.
#include "tests/cli/command.h"

namespace siamese::cli {
namespace {

class TokenizerVerb : public CommandTest {
 protected:
  void make_tokenizer() const {
    write("corpus.txt", "the cat sat on the mat and the cat sat on the hat\n");
    const auto made = run("tokenizer train t.json corpus.txt --vocab 280");
    ASSERT_EQ(made.exit_code, 0) << made.error;
  }
};

TEST_F(TokenizerVerb, EncodeAndDecodeAreEachOthersReverse) {
  make_tokenizer();
  const std::string text = "the cat\n\ncaf\xC3\xA9 <|endoftext|>\n  x";
  write("in.txt", text);
  const auto lines = run("tokenizer encode t.json in.txt --lines");
  ASSERT_EQ(lines.exit_code, 0) << lines.error;
  EXPECT_EQ(std::count(lines.out.begin(), lines.out.end(), '\n'), 4);
  write("ids.txt", lines.out);
  EXPECT_EQ(run("tokenizer decode t.json ids.txt --lines").out, text + "\n");
  write("all.txt", run("tokenizer encode t.json in.txt").out);
  EXPECT_EQ(run("tokenizer decode t.json all.txt").out, text);
  write("strings.jsonl", "\"a\\nb\"\n\"\"\n");
  write("some.txt", run("tokenizer encode t.json strings.jsonl --json-lines --threads 2").out);
  EXPECT_EQ(run("tokenizer decode t.json some.txt --json-lines").out, "\"a\\nb\"\n\"\"\n");
}

TEST_F(TokenizerVerb, Info) {
  make_tokenizer();
  const auto info = run("tokenizer info t.json");
  EXPECT_EQ(info.exit_code, 0);
  EXPECT_NE(info.out.find("vocab     2"), std::string::npos) << info.out;
  EXPECT_NE(info.out.find("<|endoftext|>"), std::string::npos) << info.out;
  EXPECT_NE(run("tokenizer info t.json --json").out.find("\"merges\":"), std::string::npos);
}

TEST_F(TokenizerVerb, BadInputIsOneLine) {
  make_tokenizer();
  expect_refusal("tokenizer encode missing.json", 3, "missing.json");
  write("bad.json", "{}");
  expect_refusal("tokenizer encode bad.json", 3, "bad.json: the key 'model' is missing");
  write("latin.txt", "ok\ncaf\xE9\n");
  expect_refusal("tokenizer encode t.json latin.txt --lines", 3,
                 "latin.txt: line 2: expected UTF-8 text, got byte 0xe9");
  write("ids.txt", "[1]\n[1, 99999]\n");
  expect_refusal("tokenizer decode t.json ids.txt --lines", 3, "ids.txt: line 2: id 99999");
  write("ids.txt", "[1, x]\n");
  expect_refusal("tokenizer decode t.json ids.txt", 3, "ids.txt: line 1: expected a JSON array");
  expect_refusal("tokenizer train u.json corpus.txt --vocab 10", 2, "the vocabulary: expected 257");
  EXPECT_FALSE(exists("u.json"));
}

TEST_F(TokenizerVerb, PrepareThenTrain) {
  make_tokenizer();
  std::string lines;
  for (int i = 0; i < 400; ++i) lines += "{\"text\": \"the cat sat on mat " + std::to_string(i) + "\"}\n";
  write("docs.jsonl", lines + "broken\n");
  const auto made = run("prepare docs.jsonl --tokenizer t.json --out p --val-fraction 0.2");
  ASSERT_EQ(made.exit_code, 0) << made.error;
  EXPECT_NE(made.error.find("1 bad lines were left out"), std::string::npos) << made.error;
  EXPECT_NE(made.error.find("docs.jsonl: line 401"), std::string::npos) << made.error;
  EXPECT_NE(made.out.find("train with: data.source=tokens data.train=[p/train]"), std::string::npos) << made.out;
  EXPECT_EQ(run("prepare docs.jsonl --tokenizer t.json --out p --val-fraction 0.2").exit_code, 0);
  expect_refusal("prepare docs.jsonl --tokenizer t.json --out p", 2, "other files or with other options");
  expect_refusal("prepare docs.jsonl --tokenizer t.json --out q --strict", 3, "docs.jsonl: line 401");
  expect_refusal("prepare docs.jsonl --tokenizer t.json --out r --eos '<x>'", 2, "--eos: '<x>' is no token");
  const auto trained = run(tiny +
                           "data.source=tokens data.train=[p/train] data.val=[p/val] model.vocab=280 model.context=16 "
                           "train.steps=2 --out run");
  EXPECT_EQ(trained.exit_code, 0) << trained.error;
}

}  // namespace
}  // namespace siamese::cli
