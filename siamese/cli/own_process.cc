#include "siamese/cli/own_process.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "siamese/base/check.h"
#include "siamese/base/child_process.h"

namespace siamese::cli {

std::string output_of_own_process(const std::vector<std::string>& words) {
  std::vector<std::string> argv = {"siamese"};
  argv.insert(argv.end(), words.begin(), words.end());
  ChildProcess process(kOwnProgram, argv, ChildProcess::Through::out);
  std::string text;
  while (process.read(text, -1)) {
  }
  if (const ProcessEnd end = process.wait(); !end.well()) {
    throw SystemError(fmt::format("siamese {}: ended with {}", fmt::join(words, " "), end.text()));
  }
  return text;
}

}  // namespace siamese::cli
