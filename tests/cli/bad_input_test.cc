// What users get wrong: one clear line, the documented exit code, nothing half-written.
#include "tests/cli/command.h"

namespace siamese::cli {
namespace {

using BadInput = CommandTest;

TEST_F(BadInput, ConfigMistakes) {
  expect_refusal(tiny + "optim.lrr=1 --out x", 2, "command line: optim.lrr: unknown key (did you mean 'optim.lr'?)");
  expect_refusal(tiny + "optm.lr=1 --out x", 2, "command line: optm.lr: unknown key (did you mean 'optim.lr'?)");
  expect_refusal(tiny + "train.steps=ten --out x", 2, "train.steps: expected a whole number, got 'ten'");
  expect_refusal(tiny + "model.heads=5 --out x", 2, "model.heads: expected a divisor of model.width (16), got 5");
  expect_refusal(tiny + "model.residual=simese --out x", 2, "did you mean 'siamese'?");
  expect_refusal(tiny + "model.residual='siamese(y=1)' --out x", 2, "unknown key");
  expect_refusal(tiny + "nonsense --out x", 2, "expected key=value");
  expect_refusal(tiny + "data.digits=4 model.context=16 --out x", 2, "model.context: expected at least 19");
  expect_refusal(tiny + "train.micro_batch=-3 --out x", 2, "train.micro_batch");
  expect_refusal(tiny + "engine.threads=4294967297 --out x", 2, "engine.threads");
  expect_refusal("train arithmetic-smal --out x", 2, "did you mean 'arithmetic-small'?");
  write("broken.yaml", "model: {width: 16\n");
  expect_refusal("train broken.yaml --out x", 2, "broken.yaml");
  write("typed.yaml", "model:\n  width: wide\n");
  expect_refusal("train typed.yaml --out x", 2, "typed.yaml:2: model.width: expected a whole number, got 'wide'");
  EXPECT_FALSE(exists("x"));
}

TEST_F(BadInput, AKeyWithoutEffectIsRefusedByEveryVerb) {
  expect_refusal("train vit-micro data.train=photos --out x", 2,
                 "command line: data.train: has no effect: it is used by data.source text, tokens, idx, cifar, folder, "
                 "latents, and data.source is shapes");
  expect_refusal("config check arithmetic-small model.experts=4", 2, "model.experts: has no effect");
  expect_refusal("bench step bench/s model.image=8", 2, "model.image: has no effect");
  write("sweep.yaml", "config: arithmetic-small\nset: {model.classes: 5}\nvariants: [{model.residual: pre}]\n");
  expect_refusal("sweep sweep.yaml --dry-run", 2, "sweep.yaml:2: model.classes: has no effect");
  write("mine.yaml", "preset: vit-micro\nmodel: {learn_sigma: false}\n");
  expect_refusal("train mine.yaml --out x", 2, "mine.yaml:2: model.learn_sigma: has no effect");
  EXPECT_FALSE(exists("x"));
  ASSERT_EQ(run(tiny + "--quiet --out run").exit_code, 0);
  expect_refusal("eval run data.train=photos", 2, "data.train: has no effect");
  // A resolved config is a recipe; what it was resolved from does not matter.
  EXPECT_EQ(run("train run/config.yaml train.steps=1 --quiet --out again").exit_code, 0);
}

TEST_F(BadInput, CommandLineMistakes) {
  expect_refusal("", 2, "subcommand");
  expect_refusal("trian", 2, "unknown verb 'trian' (did you mean 'train'?)");
  expect_refusal("train demo --out x", 2, "siamese sweep");
  expect_refusal("train arithmetic-small", 2, "--out");
  expect_refusal("generate", 2, "RUN");
  expect_refusal("schemes nope", 2, "unknown residual scheme 'nope'");
}

TEST_F(BadInput, StreamsThatAreClosedOrFull) {
  ASSERT_EQ(run(tiny + "--out run 2>&-").exit_code, 0);
  EXPECT_EQ(read("run/metrics.jsonl").find("siamese"), std::string::npos);
  const int status =
      std::system(("'" SIAMESE_BINARY "' config keys > /dev/full 2> '" + (folder / "e").string() + "'").c_str());
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_EQ(read("e"), "siamese: cannot write to the output\n");
  expect_refusal("train arithmetic-small \"$(printf 'a\\nb=1')\" --out x", 2, "a\\x0ab: unknown key");
}

TEST_F(BadInput, DataMistakes) {
  const std::string text = tiny + "data.source=text ";
  expect_refusal(text + "data.train=[gone.txt] --out x", 3, "gone.txt");
  write("empty.txt", "");
  expect_refusal(text + "data.train=[empty.txt] --out x", 3, "empty.txt");
  write("latin1.txt", std::string(500, 'a') + "\xE9" + std::string(500, 'b'));
  expect_refusal(text + "data.train=[latin1.txt] --out x", 3, "500");
  const std::string tokens = tiny + "data.source=tokens model.vocab=300 ";
  std::string big(4000, '\0');
  big[2000] = '\x01';
  big[2001] = '\x02';  // token 513 at byte 2000
  write("big.bin", big);
  expect_refusal(tokens + "data.train=[big.bin] --out x", 3, "2000");
  write("odd.bin", std::string(4001, '\0'));
  expect_refusal(tokens + "data.train=[odd.bin] --out x", 3, "odd.bin");
  std::string llmc(1024 + 100, '\0');
  llmc.replace(
      0, 12, std::string("\x88\xD8\x34\x01\x01\x00\x00\x00\xFF\xFF\x00\x00", 12));  // 20240520, version 1, 65535 tokens
  write("cut.bin", llmc);
  expect_refusal(tokens + "data.train=[cut.bin] --out x", 3, "cut.bin");
  expect_refusal(tiny + "data.source=tokens data.train=[big.bin] --out x", 2, "model.vocab");
  EXPECT_FALSE(exists("x"));
}

TEST_F(BadInput, RunsThatExistOrDoNot) {
  ASSERT_EQ(run(tiny + "--out run").exit_code, 0);
  const std::string before = read("run/metrics.jsonl");
  expect_refusal(tiny + "--out run", 2, "--overwrite");
  EXPECT_EQ(read("run/metrics.jsonl"), before);
  EXPECT_EQ(run(tiny + "train.steps=2 --out run --overwrite").exit_code, 0);
  EXPECT_FALSE(exists("run/step6"));
  write("file", "x");
  expect_refusal(tiny + "--out file/run", 1, "file/run");
  expect_refusal("resume nothing", 3, "nothing");
  expect_refusal("eval nothing", 3, "nothing");
  expect_refusal("report nothing", 3, "nothing");
  expect_refusal("generate nothing --prompt 1", 3, "nothing");
}

TEST_F(BadInput, BrokenCheckpoints) {
  ASSERT_EQ(run(tiny + "--out run").exit_code, 0);
  const auto weights = folder / "run" / "step6" / "model.safetensors";
  const std::string whole = slurp(weights);
  std::ofstream(weights, std::ios::binary) << whole.substr(0, whole.size() / 2);
  expect_refusal("eval run", 3, "model.safetensors");
  expect_refusal("generate run --prompt 1+1=", 3, "model.safetensors");
  std::ofstream(weights, std::ios::binary) << "garbage";
  expect_refusal("eval run", 3, "model.safetensors");
  std::filesystem::remove(weights);
  expect_refusal("eval run", 3, "model.safetensors");
  EXPECT_EQ(run("eval run/step4").exit_code, 0);  // an older one stands alone
  write("run/latest", "nowhere\n");
  expect_refusal("eval run", 3, "latest");
}

TEST_F(BadInput, Prompts) {
  ASSERT_EQ(run(tiny + "--out run").exit_code, 0);
  expect_refusal("generate run --prompt " + std::string(40, '1'), 2,
                 "expected at most 24 tokens (model.context), got 41");
  expect_refusal("generate run --prompt abc", 2, "a");
  expect_refusal("generate run --prompt 1 --temperature -1", 2, "--temperature");
  expect_refusal("generate run --prompt 1 --top-p 2", 2, "--top-p");
  expect_refusal("generate run --prompt 1 --samples 0", 2, "Value 0 not in range 1 to 65536");
  expect_refusal("generate run", 2, "--prompt");
}

}  // namespace
}  // namespace siamese::cli
