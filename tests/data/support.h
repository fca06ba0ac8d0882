// What the tests of this room share: a folder that goes away, the message of an error, a sample as a value.
#pragma once

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <unistd.h>

#include "siamese/base/check.h"
#include "siamese/data/dataset.h"

namespace siamese::data {

class TempFolder {
 public:
  TempFolder() {
    static std::atomic<int> count{0};
    path_ = std::filesystem::temp_directory_path() /
            ("siamese_data_" + std::to_string(getpid()) + "_" + std::to_string(count++));
    std::filesystem::create_directories(path_);
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

  // Makes the folders on the way; returns the path.
  std::string write(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    return (path_ / name).string();
  }

 private:
  std::filesystem::path path_;
};

// What `run` throws as an E, or "nothing thrown".
template <class E, class Run>
std::string error_of(Run run) {
  try {
    run();
  } catch (const E& error) {
    return error.what();
  }
  return "nothing thrown";
}

struct Sample {
  std::vector<int64_t> tokens;
  std::vector<float> weights;
  bool operator==(const Sample&) const = default;
};

inline Sample sample_at(const Dataset& dataset, uint64_t position, int64_t context) {
  Sample sample{std::vector<int64_t>(static_cast<size_t>(context) + 1, -1),
                std::vector<float>(static_cast<size_t>(context), -1)};
  dataset.sample(position, sample.tokens, sample.weights);
  return sample;
}

}  // namespace siamese::data
