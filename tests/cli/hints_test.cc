// What a user is told beside a refusal or a result, so that the next step is known.
#include <filesystem>

#include "tests/cli/command.h"
#include <nlohmann/json.hpp>

namespace siamese::cli {
namespace {

class Hints : public CommandTest {};

TEST_F(Hints, WhatAKeyOrSchemeMayHaveMeant) {
  expect_refusal(tiny + "lr=3 --out x", 2, "lr: unknown key (did you mean 'optim.lr'?)");
  expect_refusal(tiny + "model.residual=prenorm --out x", 2, "did you mean 'pre'?");
  write("dotted.yaml", "preset: arithmetic-small\nmodel.blocks: 1\n");
  expect_refusal("train dotted.yaml --out x", 2, "in a file a section is a map: 'model: {blocks: ...}'");
}

TEST_F(Hints, AFolderOfHuggingFaceIsToBeConverted) {
  std::filesystem::create_directory(folder / "hf");
  write("hf/config.json", "{\"model_type\": \"llama\"}");
  write("hf/model.safetensors", "");
  expect_refusal("eval hf", 3, "`siamese convert hf --from LAYOUT --to siamese -o OUT` makes a checkpoint of it");
}

TEST_F(Hints, ABinaryWithoutRecipesSaysWhereItLooked) {
  std::filesystem::copy_file(SIAMESE_BINARY, folder / "siamese");
  const std::string command = "cd '" + folder.string() + "' && ./siamese config list 2> error.txt";
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 3);
  EXPECT_NE(read("error.txt").find("no recipes: expected YAML files in ./configs"), std::string::npos);
}

TEST_F(Hints, TheStartSaysEpochsAndAWarmUpWithoutEnd) {
  std::string text;
  for (int i = 0; i < 60; ++i) text += "what is read again and again ";
  write("book.txt", text);
  const CommandResult result = run(
      tiny + "data.source=text data.train=[book.txt] train.steps=300 optim.schedule.warmup=300 train.eval_every=0 " +
      "train.checkpoint_every=0 --out book");
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_NE(result.error.find(" epochs; optim.schedule.warmup (300) is not over before the end"), std::string::npos)
      << result.error;
  EXPECT_NE(result.error.find("smoothed loss"), std::string::npos) << result.error;
}

TEST_F(Hints, AveragedWeightsAreNamed) {
  ASSERT_EQ(run(tiny + "train.ema=0.5 eval.averaged=true --quiet --out averaged").exit_code, 0);
  EXPECT_NE(run("eval averaged").out.find(" of averaged weights over "), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(run("eval averaged --json").out)["averaged"], true);
  EXPECT_EQ(run("eval averaged eval.averaged=false").out.find("averaged weights"), std::string::npos);
}

TEST_F(Hints, RandomDataAreNamed) {
  ASSERT_EQ(run(tiny + "data.source=random model.vocab=30 --quiet --out random").exit_code, 0);
  EXPECT_NE(run("eval random").error.find("data.source is random: this is the loss of random data"), std::string::npos);
}

TEST_F(Hints, EveryVerbHasAnExampleOfItsOwnAndItsDefaults) {
  const std::vector<std::string> verbs = {
      "train",         "resume",       "eval",          "generate",      "sample",       "upcycle",
      "probe",         "inspect",      "convert",       "sweep",         "report",       "bench",
      "config",        "schemes",      "bench machine", "bench kernels", "bench step",   "bench generate",
      "bench experts", "bench growth", "config list",   "config show",   "config check", "config keys"};
  const std::string all = run("--help").out;
  const std::string listed = all.substr(all.find("Subcommands:"));
  for (const auto& verb : verbs) {
    const CommandResult help = run(verb + " --help");
    EXPECT_EQ(help.exit_code, 0) << help.error;
    EXPECT_NE(help.out.find("Example: siamese " + verb), std::string::npos) << help.out;
    EXPECT_EQ(help.out.find("=[]"), std::string::npos) << help.out;
    if (verb.find(' ') != std::string::npos) continue;
    EXPECT_NE(listed.find("\n  " + verb + " "), std::string::npos) << verb;
  }
  const auto lines = std::count(listed.begin(), listed.end(), '\n');
  EXPECT_GE(lines, 14);
  const std::string generate = run("generate --help").out;
  EXPECT_NE(generate.find("--max-tokens INT:INT in [1 - 1099511627776]=64"), std::string::npos) << generate;
  EXPECT_NE(run("sweep --help").out.find("--jobs INT:INT in [1 - 1024]=1"), std::string::npos);
  EXPECT_EQ(run("sweep --help").out.find("--worker"), std::string::npos);
}

// Each verb that prints, with a reader that is gone before it does.
TEST_F(Hints, AReaderThatLeavesIsNoError) {
  ASSERT_EQ(run(tiny + "--quiet --out r").exit_code, 0);
  for (const std::string arguments : {"schemes", "config keys", "config show arithmetic-small", "inspect r", "--help",
                                      "train --help", "eval r", "resume r --json train.steps=9"}) {
    const std::string command = "cd '" + folder.string() + "' && { '" SIAMESE_BINARY "' " + arguments +
                                " 2> error.txt; echo $? > code.txt; } | true";
    ASSERT_EQ(std::system(command.c_str()), 0);
    EXPECT_EQ(read("code.txt"), "0\n") << arguments;
    EXPECT_EQ(read("error.txt").find("cannot write"), std::string::npos) << arguments << "\n" << read("error.txt");
  }
  EXPECT_EQ(
      std::system(("cd '" + folder.string() + "' && '" SIAMESE_BINARY "' schemes > /dev/full 2> error.txt").c_str()) >>
          8,
      1);
  EXPECT_NE(read("error.txt").find("cannot write to the output"), std::string::npos);
}

TEST_F(Hints, TheTextOfTheRecipeIsFetched) {
  expect_refusal("train text-small --out x", 3, "no file, folder or match for 'data/english', looked for in ");
  expect_refusal("train text-small --out x", 3, "; `python3 tools/real_data.py english` fetches it");
  std::filesystem::create_directories(folder / "data/english");
  write("data/english/a.txt", std::string(600, 'a') + "\n");
  EXPECT_EQ(run("train text-small model.width=8 model.heads=2 model.blocks=1 model.context=8 train.steps=1 "
                "train.batch=1 optim.schedule.warmup=0 eval.batches=1 --out x")
                .exit_code,
            0);
}

// What is planned, and recorded, is no secret of who has the data.
TEST_F(Hints, ASweepWithoutItsDataIsListed) {
  const std::string fetch = "; `python3 tools/real_data.py books` fetches it";
  const CommandResult listed = run("sweep sweeps/text train.steps=1499 --dry-run");
  EXPECT_EQ(listed.exit_code, 3) << listed.error;
  EXPECT_NE(listed.out.find("pre-lr1e-3-seed1 "), std::string::npos) << listed.out;
  EXPECT_NE(listed.out.find("27 runs: 0 recorded, 0 ended here, 27 to do\n"), std::string::npos) << listed.out;
  EXPECT_NE(listed.error.find("data.train: no file, folder or match for 'data/books/train'"), std::string::npos);
  EXPECT_NE(listed.error.find(fetch + "\n"), std::string::npos) << listed.error;
  expect_refusal("sweep sweeps/images train.steps=9 --quiet", 3, "real_data.py fashion-mnist` fetches it");

  const auto write_sweep = [this](const std::string& more) {
    write("s.yaml",
          "config: arithmetic-small\nrecord: s.jsonl\nset: {model.width: 16, model.blocks: 1, model.heads: 2, "
          "model.context: 24, train.batch: 2, train.steps: 1, train.eval_every: 0, eval.batches: 1}\n"
          "variants: [{model.residual: pre}" +
              more + "]\n");
  };
  write_sweep("");
  ASSERT_EQ(run("sweep s.yaml --quiet").exit_code, 0) << read("error.txt");
  write_sweep(", {data.source: text, data.train: [data/books], label: books}");
  expect_refusal("sweep s.yaml --quiet", 3, fetch + "; --recorded shows what is recorded, without data");
}

TEST_F(Hints, ASetOfPicturesThatIsNotThereIsSaidBeforeWhatItWouldTell) {
  const std::string cifar = "train vit-micro data.source=cifar data.train=cifar-10-batches-bin --out x";
  expect_refusal(cifar, 3, "data.train: expected a folder, got nothing: no 'cifar-10-batches-bin', looked for in ");
  std::filesystem::create_directory(folder / "cifar-10-batches-bin");
  expect_refusal(
      cifar, 3,
      "data.train: expected a folder with data_batch_*.bin (CIFAR-10) or train.bin (CIFAR-100) in it, got 'cifar");
  write("mine.yaml", "preset: vit-micro\ndata: {source: cifar, train: [nowhere]}\n");
  std::filesystem::create_directory(folder / "configs");
  std::filesystem::rename(folder / "mine.yaml", folder / "configs" / "mine.yaml");
  EXPECT_EQ(run("config list").exit_code, 0) << read("error.txt");  // what it lacks is no reason to list none
  EXPECT_NE(read("out.txt").find("no 'nowhere'"), std::string::npos) << read("out.txt");
}

TEST_F(Hints, EveryVerbThatWritesWhereOneSaysTakesTheShortNameToo) {
  for (const char* const verb :
       {"train", "eval", "sample", "upcycle", "probe", "analyze", "convert", "prepare", "sweep", "report"}) {
    EXPECT_NE(run(std::string(verb) + " --help").out.find("-o,--out"), std::string::npos) << verb;
  }
  std::string shortened = tiny + "train.steps=1 --quiet -o short";
  EXPECT_EQ(run(shortened).exit_code, 0) << read("error.txt");
  EXPECT_TRUE(exists("short/step1"));
  EXPECT_EQ(run("report short -o page.html").exit_code, 0) << read("error.txt");
  EXPECT_TRUE(exists("page.html"));
}

TEST_F(Hints, AnOptionThatIsNoneIsSaidBeforeTheOneThatIsMissing) {
  expect_refusal("generate runs/book --promt It", 2,
                 "unknown option '--promt' (did you mean '--prompt'?) (try --help)");
  expect_refusal("generate runs/book --promt=It", 2, "unknown option '--promt' (did you mean '--prompt'?)");
  expect_refusal("train arithmetic-small --otu x", 2, "unknown option '--otu' (did you mean '--out'?)");
  expect_refusal("train arithmetic-small -O x", 2, "unknown option '-O' (try --help)");
  expect_refusal("config check arithmetic-small --xyzzy-9", 2, "unknown option '--xyzzy-9' (try --help)");
  expect_refusal("sweep s.yaml --workr x", 2, "unknown option '--workr' (try --help)");  // not the hidden --worker
  expect_refusal("train arithmetic-small", 2, "--out is required");
}

TEST_F(Hints, AVerbOfAVerbIsKnownOrNamed) {
  expect_refusal("config chek x", 2, "unknown verb 'chek' (did you mean 'check'?); known: list, show, check, keys");
  expect_refusal("tokenizer encod t.json", 2, "unknown verb 'encod' (did you mean 'encode'?)");
  expect_refusal("config", 2, "subcommand is required");
}

TEST_F(Hints, ARecipeIsNoSweep) {
  expect_refusal("sweep arithmetic-small", 2,
                 "arithmetic-small.yaml: is the config of one run, not a sweep: siamese train ");
}

TEST_F(Hints, TheFirstLineOfARunNamesTheScheme) {
  const CommandResult result = run(tiny + "model.residual=siamese train.steps=1 --out x");
  EXPECT_EQ(result.error.find("scheme siamese: "), 0U) << result.error;
}

TEST_F(Hints, BytesHaveTheirUnits) {
  EXPECT_NE(run("config check siamese-1.3b").out.find(" GB of weights, gradients and moments"), std::string::npos);
  EXPECT_NE(run("config check text-small").out.find("101.9 MB of weights, gradients and moments"), std::string::npos);
}

TEST_F(Hints, ContinuationsThatAreAllAlikeAreSaidToBe) {
  ASSERT_EQ(run(tiny + "--quiet --out r").exit_code, 0);
  EXPECT_EQ(
      run("generate r --prompt 1+1= -n 2 --max-tokens 3").error,
      "generate: at temperature 0 the 2 continuations of a prompt are all alike; --temperature 1 draws each anew\n");
  EXPECT_EQ(run("generate r --prompt 1+1= -n 2 --max-tokens 3 --temperature 1").error, "");
  EXPECT_EQ(run("generate r --prompt 1+1= --max-tokens 3").error, "");
}

TEST_F(Hints, APatternInAFileStandsInQuotes) {
  for (const char* const pattern : {"*.txt", "*/*.txt", "*"}) {
    write("star.yaml", std::string("preset: text-small\ndata: {train: [") + pattern + "]}\n");
    expect_refusal("train star.yaml --out x", 2, "a pattern of files that begins with * stands in quotes: \"*.txt\"");
  }
  expect_refusal(tiny + "'data.train=[*.txt]' --out x", 2, "stands in quotes");
}

}  // namespace
}  // namespace siamese::cli
