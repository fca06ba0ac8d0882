// What is found about a run is put into its directory, unless `train --overwrite` has put another run there meanwhile.
#pragma once

#include <filesystem>
#include <string>

namespace siamese::runs {

class SameRun {
 public:
  // To be made before the checkpoint is read. One that lies in no run is always the same.
  explicit SameRun(const std::filesystem::path& checkpoint);

  // DataError when another run stands there now, or none. What was made in it before that was seen is for the caller
  // to remove; `made` and the folder around it are removed here where they are empty.
  void check(const std::filesystem::path& made = {}) const;

 private:
  std::filesystem::path run_;
  std::string id_;
};

}  // namespace siamese::runs
