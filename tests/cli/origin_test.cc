// A run looked at from another folder, and a run's own config as the start of the next.
#include "tests/cli/command.h"
#include <nlohmann/json.hpp>

namespace siamese::cli {
namespace {

class Origin : public CommandTest {};

TEST_F(Origin, ARunWorksFromAnyFolder) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += "line " + std::to_string(i) + " of a book\n";
  write("book.txt", text);
  std::filesystem::create_directories(folder / "sub");
  ASSERT_EQ(run(tiny + "data.source=text data.train=[book.txt] --out run").exit_code, 0) << read("error.txt");
  const auto said = [&](const std::string& arguments, const std::string& prefix) {
    const CommandResult result = run(arguments, prefix);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return result.out;
  };
  const std::string here = said("eval run --json", "");
  EXPECT_EQ(said("eval ../run --json", "env -C sub"), here);
  EXPECT_EQ(nlohmann::json::parse(here)["kind"], "eval");
  said("resume ../run/step4 --quiet", "env -C sub");
  EXPECT_NE(read("run/config.yaml").find("train: [book.txt]"), std::string::npos) << read("run/config.yaml");
  // What is named on the command line lies where the command is given.
  write("sub/other.txt", text + text);
  EXPECT_NE(said("eval ../run --json data.train=[other.txt]", "env -C sub"), here);
  std::filesystem::remove(folder / "book.txt");
  const CommandResult gone = run("eval ../run", "env -C sub");
  EXPECT_EQ(gone.exit_code, 3);
  EXPECT_NE(gone.error.find("data.train: no file, folder or match for 'book.txt', looked for in "), std::string::npos)
      << gone.error;
}

TEST_F(Origin, ARunsOwnConfigDerivesAnewWhatNobodySet) {
  ASSERT_EQ(run(tiny + "--out run --quiet").exit_code, 0) << read("error.txt");
  const CommandResult shown = run("config show run/config.yaml model.heads=4 model.width=32 train.batch=6");
  ASSERT_EQ(shown.exit_code, 0) << shown.error;
  for (const char* const line : {"  kv_heads: 4\n", "  micro_batch: 6\n"}) {
    EXPECT_NE(shown.out.find(line), std::string::npos) << line << shown.out;
  }
  EXPECT_EQ(run("config show run/config.yaml").out, read("run/config.yaml"));
  EXPECT_EQ(run("eval run train.batch=3").exit_code, 0) << read("error.txt");
}

}  // namespace
}  // namespace siamese::cli
