// Names and limits that nobody expects: paths that are not UTF-8, text that steers a terminal, paths that cannot be
// looked up, JSON nested without end, hardly any memory. One line of ours, and nothing of the run is lost.
#include "tests/cli/command.h"
#include <nlohmann/json.hpp>

#include "siamese/io/png.h"

namespace siamese::cli {
namespace {

namespace fs = std::filesystem;

class StrangeNames : public CommandTest {
 protected:
  // Two classes of `count` images each, the last of the second class under another name.
  void write_images(int count, const std::string& last) const {
    io::Image image(8, 8, 3);
    for (const char* const label : {"a", "b"}) {
      fs::create_directories(folder / "images" / label);
      for (int i = 0; i < count; ++i) {
        const bool other = label[0] == 'b' && i + 1 == count;
        io::write_png(folder / "images" / label / (other ? last : "i" + std::to_string(i) + ".png"), image);
      }
    }
  }

  const std::string vit =
      "train vit-micro model.image=8 model.patch=4 model.width=16 model.blocks=1 model.heads=2 train.batch=2 "
      "train.steps=40 train.eval_every=0 train.checkpoint_every=0 eval.batches=1 engine.threads=1 ";
  const std::string images =
      "data.source=folder data.train=[images] data.val_fraction=0.5 model.channels=3 model.classes=2 ";
};

TEST_F(StrangeNames, AFileThatIsNotUtf8IsNamedAndTheRunIsSaved) {
  write_images(4, "h0\xff.png");
  ASSERT_EQ(run(vit + images + "--quiet --out good").exit_code, 0);
  // Read when its turn comes, after the first steps.
  fs::resize_file(folder / "images" / "b" / "h0\xff.png", 40);  // still an image by its first bytes
  const CommandResult result = run(vit + images + "--quiet --out run");
  EXPECT_EQ(result.exit_code, 3) << result.error;
  EXPECT_NE(result.error.find("h0\\xff.png"), std::string::npos) << result.error;
  const auto status = nlohmann::json::parse(read("run/run.json"));
  EXPECT_EQ(status["status"], "stopped");
  EXPECT_NE(status["message"].get<std::string>().find("h0\xEF\xBF\xBD.png"), std::string::npos) << status;
}

TEST_F(StrangeNames, PathsThatAreNotUtf8Work) {
  const std::string strange = "$(printf 'o\\377')";
  ASSERT_EQ(run(tiny + "model.residual=pre --quiet --out \"" + strange + "\"/run").exit_code, 0);
  for (const std::string arguments :
       {"resume o/run", "eval --json o/run", "inspect --json o/run", "report o/run", "analyze o/run --samples 2 --json",
        "upcycle o/run --to siamese --out o/up --json",
        "convert o/run --from siamese --to siamese --out o/converted --json"}) {
    std::string changed = arguments;
    for (size_t at = 0; (at = changed.find("o/", at)) != std::string::npos; at += strange.size()) {
      changed.replace(at, 1, "\"" + strange + "\"");
    }
    const CommandResult result = run(changed);
    EXPECT_EQ(result.exit_code, 0) << arguments << "\n" << result.error;
    if (arguments.find("--json") != std::string::npos) {
      EXPECT_TRUE(nlohmann::json::accept(result.out)) << arguments << "\n" << result.out;
    }
  }
}

TEST_F(StrangeNames, NothingSteersTheTerminal) {
  write(
      "s.yaml",
      "sweep: s\nconfig: arithmetic-small\nset: {model.width: 16, model.blocks: 1, model.heads: 2, model.context: 24, "
      "data.digits: 1, train.batch: 4, train.steps: 1, eval.batches: 1, eval.problems: 0, engine.threads: 1}\n"
      "variants:\n  - {model.residual: pre, label: \"x\u009b31m\u202ey\"}\n");
  const CommandResult result = run("sweep s.yaml");
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_NE(result.out.find("x\\u009b31m\\u202ey"), std::string::npos) << result.out;
  for (const std::string& text : {result.out, result.error}) {
    EXPECT_EQ(text.find("\u009b"), std::string::npos);
    EXPECT_EQ(text.find("\u202e"), std::string::npos);
  }
  // The names of runs, which a verb says when it is done.
  const std::string strange = "$(printf 'r\\033[31m')";
  for (const std::string& arguments :
       {tiny + "--quiet --out ", std::string("eval "), std::string("report "), std::string("sweep s.yaml --out s")}) {
    const CommandResult made = run(arguments + '"' + strange + '"');
    EXPECT_EQ(made.exit_code, 0) << made.error;
    EXPECT_NE(made.out.find("r\\x1b[31m"), std::string::npos) << made.out;
    EXPECT_EQ((made.out + made.error).find('\x1b'), std::string::npos) << arguments << made.out << made.error;
  }
  const std::string header =
      R"({"__metadata__":{"residual":"\u009bpre"},"a\u001b\u202eb":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  std::string length(8, '\0');
  length[0] = static_cast<char>(header.size());
  write("x.safetensors", length + header + std::string(4, '\0'));
  const CommandResult shown = run("inspect x.safetensors");
  EXPECT_EQ(shown.exit_code, 0) << shown.error;
  EXPECT_NE(shown.out.find("a\\x1b\\u202eb"), std::string::npos) << shown.out;
  EXPECT_NE(shown.out.find("\\u009bpre"), std::string::npos) << shown.out;
}

TEST_F(StrangeNames, WhatTheSystemWillNotLookUpIsNotMissing) {
  fs::create_symlink("round", folder / "round");
  const std::string reason = "Too many levels of symbolic links";
  for (const std::string arguments :
       {"resume round", "eval round", "generate round --prompt 1", "inspect round", "report round",
        "train round --out x", "sweep round", "upcycle round --to siamese --out x",
        "probe round --inputs round --out x", "convert round --from siamese --to siamese --out x"}) {
    const int code = arguments.find("train") == 0 || arguments.find("sweep") == 0 ? 2 : 3;
    expect_refusal(arguments, code, reason);
  }
  expect_refusal(tiny + "data.source=text data.train=[round] --out x", 3, reason);
  expect_refusal(tiny + "data.source=text data.train=[round/*.txt] --out x", 3, reason);
  expect_refusal(tiny + "init.from=round --out x", 3, reason);
  expect_refusal(vit + "data.source=folder model.channels=3 model.classes=2 data.train=[round] --out x", 3, reason);
  expect_refusal(vit + "data.source=idx model.channels=1 model.classes=10 data.train=[round] --out x", 3, reason);
  expect_refusal(vit + "data.source=cifar model.classes=10 data.train=[round] --out x", 3, reason);
  EXPECT_FALSE(exists("x"));
  // A part of a run that cannot be looked up is not a part that is missing.
  ASSERT_EQ(run(tiny + "--quiet --out run").exit_code, 0);
  for (const char* const name : {"latest", "step6/model.safetensors", "step6/optim.safetensors", "config.yaml"}) {
    fs::rename(folder / "run" / name, folder / "kept");
    fs::create_symlink(fs::path(name).filename(), folder / "run" / name);
    expect_refusal("resume run", 3, reason);
    fs::rename(folder / "kept", folder / "run" / name);
  }
  EXPECT_EQ(run("resume run").exit_code, 0);
}

TEST_F(StrangeNames, JsonNestedWithoutEndIsRefused) {
  ASSERT_EQ(run(tiny + "--quiet --out run").exit_code, 0);
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  const std::string trainer = read("run/step6/trainer.json");
  write("run/step6/trainer.json", "{\"format\":1,\"step\":" + deep + "}");
  expect_refusal("resume run", 3, "trainer.json: expected JSON at most 32 deep");
  write("run/step6/trainer.json", trainer);
  const std::string state = read("run/run.json");
  write("run/run.json", "{\"status\":" + deep + "}");
  expect_refusal("resume run", 3, "run.json: expected JSON at most 32 deep");
  write("run/run.json", state);
  fs::create_directories(folder / "sweep");
  write("sweep/sweep.json", "{\"runs\":[" + deep + "]}");
  expect_refusal("report sweep", 3, "sweep.json: expected JSON at most 32 deep");
  write("record.jsonl", "{\"schema\":1,\"sweep\":" + deep + "}\n");
  write("s.yaml", "sweep: s\nconfig: arithmetic-small\nset: {train.steps: 1}\n");
  expect_refusal("sweep s.yaml --record record.jsonl --dry-run", 3, "expected JSON at most 32 deep");
}

#ifndef __SANITIZE_ADDRESS__  // whose shadow memory does not fit into any of these limits
TEST_F(StrangeNames, HardlyAnyMemoryIsSaidInOneLine) {
  bool refused = false;
  for (int megabytes = 10; megabytes <= 130; megabytes += 12) {
    const std::string limit = "ulimit -d " + std::to_string(megabytes * 1024) + " && ";
    const CommandResult result = run(tiny + "--quiet --out run" + std::to_string(megabytes), limit);
    // 127: the system's loader could not even map the libraries, and says so itself.
    EXPECT_TRUE(result.exit_code == 0 || result.exit_code == 1 || result.exit_code == 127) << megabytes << result.error;
    refused |= result.exit_code == 1;
    if (result.exit_code != 1) continue;
    EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1) << megabytes << ": " << result.error;
    EXPECT_TRUE(result.error.starts_with("siamese: ")) << megabytes << ": " << result.error;
  }
  EXPECT_TRUE(refused);
}
#endif

}  // namespace
}  // namespace siamese::cli
