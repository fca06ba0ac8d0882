// What the tests of this room share.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "siamese/base/check.h"

namespace siamese::runs {

inline std::string error_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

inline void expect_said(const std::string& text, const std::string& words) {
  EXPECT_NE(text.find(words), std::string::npos) << "expected '" << words << "' in '" << text << "'";
}

class FolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* const info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::temp_directory_path() /
              ("siamese_runs_" + std::string(info->name()) + std::to_string(::getpid()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
};

inline std::string fixture(const std::string& name) {
  return std::string(SIAMESE_SOURCE_DIR) + "/tests/fixtures/0.1.0/" + name;
}

}  // namespace siamese::runs
