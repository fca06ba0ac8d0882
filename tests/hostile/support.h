// Feeds bad bytes to a property and fails on whatever is not success or a refusal.
#pragma once

#include <algorithm>
#include <ctime>
#include <stdexcept>
#include <string>

#include "fuzz/properties.h"
#include <gtest/gtest.h>

namespace siamese::hostile {

using Check = void (*)(fuzz::Bytes bytes);

// "abc\x00..." for the message of a failure.
inline std::string excerpt(const std::string& bytes) { return testing::PrintToString(bytes.substr(0, 200)); }

inline void expect_holds(Check check, const std::string& bytes, const std::string& what = "") {
  const std::clock_t begin = std::clock();
  try {
    check(std::as_bytes(std::span(bytes)));
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what() << "\n" << what << ": " << bytes.size() << " bytes: " << excerpt(bytes);
  }
  // Of the processor, not of the wall: far more than any of them takes, far less than a hang.
  EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, 10.0) << what << excerpt(bytes);
}

// A good file cut at every length, and with every byte changed in several ways.
inline void expect_holds_when_damaged(Check check, const std::string& good) {
  expect_holds(check, good, "whole");
  for (size_t length = 0; length < good.size(); ++length) expect_holds(check, good.substr(0, length), "cut");
  for (size_t at = 0; at < good.size(); ++at) {
    for (const char changed : {'\0', '\xFF', '\x7F', static_cast<char>(good[at] ^ 1),
                               static_cast<char>(good[at] ^ 0x80), static_cast<char>(good[at] + 16)}) {
      std::string damaged = good;
      damaged[at] = changed;
      expect_holds(check, damaged, "byte " + std::to_string(at));
    }
  }
}

inline std::string repeated(const std::string& text, size_t times) {
  std::string out;
  out.reserve(text.size() * times);
  for (size_t i = 0; i < times; ++i) out += text;
  return out;
}

}  // namespace siamese::hostile
