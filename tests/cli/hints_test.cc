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

}  // namespace
}  // namespace siamese::cli
