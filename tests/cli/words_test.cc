// A run that knows its tokenizer: from text to a model that is prompted in words, and what goes with it.
#include <cctype>

#include "tests/cli/command.h"
#include <nlohmann/json.hpp>

namespace siamese::cli {
namespace {

using Json = nlohmann::json;

class WordsVerb : public CommandTest {
 protected:
  // A corpus, its tokenizer, its token files, and a run on them.
  void make_run() const {
    std::string lines;
    for (int i = 0; i < 40; ++i) lines += "the cat sat on the mat and the h\xC3\xA9ron sat on the hat\n";
    write("corpus.txt", lines);
    ok("tokenizer train t.json corpus.txt --vocab 280");
    ok("prepare corpus.txt --lines --tokenizer t.json --out data --val-fraction 0");
    ok(tiny + kTokens + " model.vocab=280 'eval.prompts=[the cat, \"on \"]' --out run");
  }
  CommandResult ok(const std::string& arguments) const {
    CommandResult result = run(arguments);
    EXPECT_EQ(result.exit_code, 0) << arguments << "\n" << result.error;
    return result;
  }

  const std::string kTokens = "data.source=tokens 'data.train=[data/train]' train.steps=4 train.eval_every=2";
};

TEST_F(WordsVerb, ARunKeepsItsTokenizer) {
  make_run();
  const std::string tokenizer = read("t.json");
  EXPECT_EQ(read("run/tokenizer.json"), tokenizer);
  EXPECT_EQ(read("run/step4/tokenizer.json"), tokenizer);
  const Json state = Json::parse(read("run/step4/trainer.json"));
  EXPECT_EQ(state.at("files"), Json({"tokenizer.json"}));
  EXPECT_EQ(state.at("tokenizer"), Json::parse(ok("tokenizer info t.json --json").out).at("hash"));
  // It stands alone: neither the data nor the first file are needed.
  std::filesystem::rename(folder / "run" / "step4", folder / "alone");
  std::filesystem::remove_all(folder / "data");
  std::filesystem::remove(folder / "t.json");
  EXPECT_EQ(ok("generate alone --prompt 'the cat' --max-tokens 4 --json").error, "");

  write("alone/tokenizer.json", tokenizer + " ");
  expect_refusal("generate alone --prompt x", 3, "tokenizer.json: hash: expected");
  std::filesystem::remove(folder / "alone" / "tokenizer.json");
  expect_refusal("generate alone --prompt x", 3, "tokenizer.json: missing");
}

TEST_F(WordsVerb, SamplesOfTextAtEachEvaluation) {
  make_run();
  const std::string lines = read("run/eval.jsonl");
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 2);
  const Json last = Json::parse(lines.substr(lines.find('\n') + 1));
  ASSERT_EQ(last.at("prompts").size(), 2U);
  EXPECT_EQ(last.at("prompts")[0].at("prompt"), "the cat");
  // The same text as `generate` makes, and as `eval` says.
  const Json made = Json::parse(ok("generate run --prompt 'the cat' --max-tokens 48 --json").out);
  EXPECT_EQ(last.at("prompts")[0].at("text"), made.at("text"));
  EXPECT_EQ(Json::parse(ok("eval run --json").out).at("prompts"), last.at("prompts"));
  ok("report run");
  EXPECT_NE(read("run/report.html").find("\"prompts\":[[\"the cat\""), std::string::npos);
  // Resumed, it still has them.
  ok("resume run train.steps=6");
  EXPECT_EQ(read("run/step6/tokenizer.json"), read("t.json"));
  const std::string more = read("run/eval.jsonl");
  EXPECT_TRUE(Json::parse(more.substr(more.rfind('\n', more.size() - 2) + 1)).contains("prompts"));

  expect_refusal(tiny + kTokens + " model.vocab=280 'eval.prompts=[\"\"]' --out other", 2,
                 "eval.prompts: expected at least");
  const std::string longer = "eval.prompts=['" + std::string(500, 'x') + "']";
  expect_refusal(tiny + kTokens + " model.vocab=280 " + longer + " --out other", 2,
                 "eval.prompts: expected at most 24");
}

TEST_F(WordsVerb, PromptsInWords) {
  make_run();
  write("prompt.txt", "the cat");
  const std::string text = ok("generate run --prompt 'the cat' --max-tokens 8").out;
  const Json one = Json::parse(ok("generate run --prompt 'the cat' --max-tokens 8 --json").out);
  EXPECT_EQ(text, one.at("text").get<std::string>() + "\n");
  EXPECT_EQ(one.at("prompt_tokens"), Json::parse(ok("tokenizer encode t.json prompt.txt --no-special").out));
  // Its own ids, in the place of words.
  std::string ids;
  for (const auto& id : one.at("prompt_tokens")) ids += std::to_string(id.get<int>()) + " ";
  std::string made;
  for (const auto& id : one.at("tokens")) made += (made.empty() ? "" : " ") + std::to_string(id.get<int>());
  EXPECT_EQ(ok("generate run --ids --prompt '" + ids + "' --max-tokens 8").out, made + "\n");
}

TEST_F(WordsVerb, SeveralPromptsStandardInputAndStops) {
  make_run();
  write("in.txt", "the cat\n");
  const std::string alone = ok("generate run --prompt 'the cat' --max-tokens 6").out;
  // `run` gives no standard input: the shell's own redirection comes first.
  const std::string command = "cd '" + folder.string() +
                              "' && '" SIAMESE_BINARY "' generate run --prompt - --max-tokens 6 < in.txt > piped.txt";
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(read("piped.txt"), alone);
  expect_refusal("generate run --prompt - --prompt -", 2, "--prompt: expected - (standard input) once");

  const std::string lines =
      ok("generate run --prompt 'the cat' --prompt 'on the' -n 2 --temperature 1 --seed 5 --max-tokens 6 --json").out;
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 4);
  std::vector<Json> all;
  for (std::istringstream stream(lines); stream;) {
    std::string line;
    if (std::getline(stream, line)) all.push_back(Json::parse(line));
  }
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0].at("prompt"), "the cat");
  EXPECT_EQ(all[3].at("prompt"), "on the");
  EXPECT_EQ(all[3].at("sample"), 1);
  EXPECT_NE(all[0].at("tokens"), all[1].at("tokens"));

  // A stop is left out, and ends it: whatever the text is, its first letter.
  const std::string greedy = "generate run --prompt 'the cat' --max-tokens 12 --json ";
  const std::string whole = Json::parse(ok(greedy).out).at("text");
  const auto letter = std::find_if(whole.begin(), whole.end(), [](unsigned char c) { return std::isalpha(c) != 0; });
  ASSERT_NE(letter, whole.end()) << whole;
  const Json stopped = Json::parse(ok(greedy + "--stop nowhere --stop " + std::string(1, *letter)).out);
  EXPECT_EQ(stopped.at("text"), std::string(whole.begin(), letter));
  EXPECT_EQ(stopped.at("finish"), "stop");
}

TEST_F(WordsVerb, DifferentVocabulariesAreOneLine) {
  make_run();
  expect_refusal(tiny + kTokens + " model.vocab=280 data.tokenizer=nowhere.json --out other", 3,
                 "data.tokenizer: expected a tokenizer.json");
  ok("tokenizer train u.json corpus.txt --vocab 260");
  ok("prepare corpus.txt --lines --tokenizer u.json --out more --val-fraction 0");
  const std::string more = tiny + "data.source=tokens 'data.train=[more/train]' model.vocab=262 ";
  expect_refusal(more + "data.tokenizer=t.json --out other", 3, "but the model has 262 (model.vocab)");
  EXPECT_FALSE(exists("other"));
  // Two corpora of different tokenizers make no run.
  expect_refusal(tiny + "data.source=tokens 'data.train=[data/train, more/train]' model.vocab=280 --out other", 3,
                 "different tokenizers");
}

TEST_F(WordsVerb, ConvertAndUpcycleCarryItAlong) {
  make_run();
  ok("convert run --from siamese --to hf -o hf");
  EXPECT_EQ(read("hf/tokenizer.json"), read("t.json"));
  ok("convert hf --from hf --to siamese -o back");
  EXPECT_EQ(read("back/tokenizer.json"), read("t.json"));
  EXPECT_EQ(ok("generate back --prompt 'the cat' --max-tokens 6").out,
            ok("generate run --prompt 'the cat' --max-tokens 6").out);
  ok(tiny + kTokens + " model.vocab=280 model.residual=pre --out pre");
  ok("upcycle pre --to siamese -o up");
  EXPECT_EQ(read("up/tokenizer.json"), read("t.json"));
  ok("upcycle pre --to siamese -o up --overwrite");
}

}  // namespace
}  // namespace siamese::cli
