// What a caller's mistake must give: an error of one line that names what is wrong.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "siamese/base/check.h"

namespace siamese::testing {

template <class Kind = Error, class Action>
void expect_error(const Action& action, const std::vector<std::string>& words) {
  try {
    action();
    ADD_FAILURE() << "expected an error that says " << (words.empty() ? "why" : words.front());
  } catch (const Kind& error) {
    const std::string message = error.what();
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    for (const auto& word : words) EXPECT_NE(message.find(word), std::string::npos) << message << ": no " << word;
  }
}

}  // namespace siamese::testing
