// What an error that is not ours (base/check.h) says, in one line: memory that is not there, LibTorch, oneDNN.
#pragma once

#include <exception>
#include <string>

namespace siamese::train {

std::string failure_text(const std::exception& error);

}  // namespace siamese::train
