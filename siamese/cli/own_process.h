// Work of this program in a process of its own.
#pragma once

#include <string>
#include <vector>

namespace siamese::cli {

inline constexpr const char* kOwnProgram = "/proc/self/exe";

// Runs `siamese WORDS...` and returns what it wrote to stdout; its stderr is ours. SystemError when it did not end
// well: it has then said why.
std::string output_of_own_process(const std::vector<std::string>& words);

}  // namespace siamese::cli
