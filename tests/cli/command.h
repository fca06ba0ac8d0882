// Runs the binary as a user would.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace siamese::cli {

struct CommandResult {
  int exit_code = -1;
  std::string out;
  std::string error;
};

inline std::string slurp(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

// A fresh folder for each test, which is also the working directory of its commands.
class CommandTest : public ::testing::Test {
 protected:
  CommandTest() {
    const auto* const info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder = std::filesystem::temp_directory_path() /
             ("siamese_cli_" + std::string(info->name()) + "_" + std::to_string(getpid()));
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
  }
  ~CommandTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }

  // `arguments` as in a shell. `prefix` goes before the binary ("timeout -s INT 2").
  CommandResult run(const std::string& arguments, const std::string& prefix = "") const {
    const std::string command = "cd '" + folder.string() + "' && " + prefix + " '" SIAMESE_BINARY "' " + arguments +
                                " > out.txt 2> error.txt < /dev/null";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, slurp(folder / "out.txt"), slurp(folder / "error.txt")};
  }

  // Exit code, one line on stderr that holds `text`, and no stack trace.
  void expect_refusal(const std::string& arguments, int exit_code, const std::string& text) const {
    const CommandResult result = run(arguments);
    EXPECT_EQ(result.exit_code, exit_code) << arguments << "\n" << result.error;
    EXPECT_NE(result.error.find(text), std::string::npos) << arguments << "\nsaid: " << result.error;
    EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1) << arguments << "\nsaid: " << result.error;
    EXPECT_TRUE(result.error.starts_with("siamese: ")) << result.error;
  }

  void write(const std::string& name, const std::string& content) const {
    std::ofstream(folder / name, std::ios::binary) << content;
  }
  std::string read(const std::string& name) const { return slurp(folder / name); }
  bool exists(const std::string& name) const { return std::filesystem::exists(folder / name); }

  // Trains in about a second.
  const std::string tiny = "train '" SIAMESE_CONFIG_FOLDER "/../tests/cli/tiny.yaml' ";

  std::filesystem::path folder;
};

}  // namespace siamese::cli
