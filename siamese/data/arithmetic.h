// Arithmetic as text, one character a token: "\n12+34=46\n3-12=-9\n..." cut at context + 1.
//
// Problem: operation uniform; digit count of each operand uniform in 1..digits, then uniform over the numbers of that
// many digits (0 has one).
//
// Answer: decimal; with reverse its digits stand least significant first, a minus sign still in front ("-21\n" = -12).
//
// Split: by a hash of (operation, min(a, b), max(a, b)), the same for every seed: a+b and b+a are on one side, and no
// problem of one side occurs in a sample of the other.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "siamese/data/codec.h"
#include "siamese/data/config.h"
#include "siamese/data/dataset.h"

namespace siamese::data {

// The id of a character is its index; '_' pads.
inline constexpr std::string_view kArithmeticAlphabet = "0123456789+-*=\n_";
inline constexpr int64_t kArithmeticPad = 15;

struct Problem {
  char operation = '+';
  int64_t a = 0;
  int64_t b = 0;
  int digits = 1;      // of the longer operand
  std::string prompt;  // "\n12+34="
  std::string answer;  // "46\n"
};

Problem make_problem(char operation, int64_t a, int64_t b, bool reverse);

// The side of the split on which a problem lies.
Split side_of(char operation, int64_t a, int64_t b, double test_fraction);

// `count` distinct problems of the test side whose longer operand has `digits` digits, uniform over all of these;
// fewer when there are fewer. For exact-match evaluation.
std::vector<Problem> test_problems(const DataConfig& config, char operation, int digits, int64_t count, uint64_t seed);

std::unique_ptr<Codec> arithmetic_codec();
std::unique_ptr<Dataset> arithmetic_dataset(const DataConfig& config, Split split, int64_t context, uint64_t seed);

}  // namespace siamese::data
