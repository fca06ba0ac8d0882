#include "siamese/data/arithmetic.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/base/random.h"

namespace siamese::data {
namespace {

constexpr std::array<int64_t, 5> kPowersOfTen = {1, 10, 100, 1000, 10000};

int digit_count(int64_t number) { return number < 10 ? 1 : 1 + digit_count(number / 10); }

// The numbers of `digits` digits are [smallest, smallest + how_many).
int64_t smallest(int digits) { return digits == 1 ? 0 : kPowersOfTen[static_cast<size_t>(digits) - 1]; }
int64_t how_many(int digits) { return kPowersOfTen[static_cast<size_t>(digits)] - smallest(digits); }

int64_t scaled(uint32_t word, int64_t bound) {
  return static_cast<int64_t>((static_cast<uint64_t>(word) * static_cast<uint64_t>(bound)) >> 32);
}

int64_t result_of(char operation, int64_t a, int64_t b) {
  switch (operation) {
    case '+':
      return a + b;
    case '-':
      return a - b;
    default:
      SIAMESE_INVARIANT(operation == '*');
      return a * b;
  }
}

class ArithmeticCodec : public Codec {
 public:
  int64_t vocab() const override { return std::ssize(kArithmeticAlphabet); }
  bool is_text() const override { return true; }

  std::vector<int64_t> encode(std::string_view text) const override {
    std::vector<int64_t> ids;
    ids.reserve(text.size());
    for (size_t i = 0; i < text.size(); ++i) {
      const size_t id = kArithmeticAlphabet.find(text[i]);
      if (id == std::string_view::npos) throw UsageError(bad_character(text, i));
      ids.push_back(static_cast<int64_t>(id));
    }
    return ids;
  }

  std::string decode(std::span<const int64_t> ids) const override {
    std::string text;
    for (const int64_t id : ids) {
      if (id >= 0 && id < vocab()) {
        text += kArithmeticAlphabet[static_cast<size_t>(id)];
      } else {
        text += kReplacement;
      }
    }
    return text;
  }

 private:
  static std::string bad_character(std::string_view text, size_t at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const std::string shown =
        byte > 0x20 && byte < 0x7F ? fmt::format("'{}'", text[at]) : fmt::format("byte 0x{:02x}", byte);
    return fmt::format("expected only the characters 0-9 + - * = _ and newline, got {} at character {} of the text",
                       shown, at + 1);
  }
};

class ArithmeticDataset : public Dataset {
 public:
  ArithmeticDataset(const DataConfig& config, Split split, int64_t context, uint64_t seed)
      : config_(config), split_(split), context_(context), seed_(seed ^ hash_text("data.arithmetic")) {
    // A tiny fraction of few problems may be none: then drawing until one fits would never end.
    constexpr uint64_t kDraws = 100000;
    for (uint64_t i = 0; i < kDraws; ++i) {
      if (fits(draw(0, 0, i))) return;
    }
    throw UsageError(fmt::format("data.test_fraction: {} leaves no {} problems of up to {} digits",
                                 config_.test_fraction, split_name(), config_.digits));
  }

  int64_t vocab() const override { return std::ssize(kArithmeticAlphabet); }
  int64_t samples() const override { return 0; }

  void sample(uint64_t position, std::span<int64_t> tokens, std::span<float> weights) const override {
    SIAMESE_INVARIANT(std::ssize(tokens) == context_ + 1 && std::ssize(weights) == context_);
    size_t filled = 0;
    const auto put = [&](std::string_view text, bool counts) {
      for (const char c : text) {
        if (filled == tokens.size()) return;
        tokens[filled] = static_cast<int64_t>(kArithmeticAlphabet.find(c));
        if (filled > 0) weights[filled - 1] = counts || config_.loss == LossOn::all ? 1.0F : 0.0F;
        ++filled;
      }
    };
    put("\n", false);
    for (uint64_t i = 0; filled < tokens.size(); ++i) {
      const Drawn drawn = draw(seed_, position, i);
      if (!fits(drawn)) continue;
      const Problem problem = make_problem(drawn.operation, drawn.a, drawn.b, config_.reverse);
      put(std::string_view(problem.prompt).substr(1), false);  // the newline before it is already there
      put(problem.answer, true);
    }
  }

  std::string describe() const override {
    return fmt::format("arithmetic {}: {} of 1 to {} digits, {:.3g}% of all problems, loss on {}{}", split_name(),
                       fmt::join(config_.operations, " "), config_.digits,
                       100 * (split_ == Split::test ? config_.test_fraction : 1 - config_.test_fraction),
                       enum_text(config_.loss), config_.reverse ? ", answers reversed" : "");
  }

 private:
  struct Drawn {
    char operation;
    int64_t a;
    int64_t b;
  };

  std::string_view split_name() const { return split_ == Split::train ? "train" : "test"; }

  Drawn draw(uint64_t seed, uint64_t position, uint64_t index) const {
    const auto words = random_words(seed, position, index);
    const int64_t counts = scaled(words[1], int64_t{config_.digits} * config_.digits);
    const int digits_a = 1 + static_cast<int>(counts / config_.digits);
    const int digits_b = 1 + static_cast<int>(counts % config_.digits);
    return {config_.operations[static_cast<size_t>(scaled(words[0], std::ssize(config_.operations)))],
            smallest(digits_a) + scaled(words[2], how_many(digits_a)),
            smallest(digits_b) + scaled(words[3], how_many(digits_b))};
  }

  bool fits(const Drawn& drawn) const {
    return side_of(drawn.operation, drawn.a, drawn.b, config_.test_fraction) == split_;
  }

  DataConfig config_;
  Split split_;
  int64_t context_;
  uint64_t seed_;
};

}  // namespace

Problem make_problem(char operation, int64_t a, int64_t b, bool reverse) {
  const int64_t result = result_of(operation, a, b);
  std::string answer = fmt::format("{}", std::abs(result));
  if (reverse) std::reverse(answer.begin(), answer.end());
  return {operation,
          a,
          b,
          std::max(digit_count(a), digit_count(b)),
          fmt::format("\n{}{}{}=", a, operation, b),
          fmt::format("{}{}\n", result < 0 ? "-" : "", answer)};
}

Split side_of(char operation, int64_t a, int64_t b, double test_fraction) {
  static const uint64_t kSplitKey = hash_text("data.arithmetic.split");
  const auto pair = static_cast<uint64_t>(std::min(a, b)) << 32 | static_cast<uint64_t>(std::max(a, b));
  const double place = random_uniform(kSplitKey, static_cast<unsigned char>(operation), pair);
  return place < test_fraction ? Split::test : Split::train;
}

std::vector<Problem> test_problems(const DataConfig& config, char operation, int digits, int64_t count, uint64_t seed) {
  check(config);
  if (config.operations.find(operation) == std::string::npos || digits < 1 || digits > config.digits) {
    throw UsageError(fmt::format("no problems '{}' of {} digits: data.operations is '{}', data.digits {}", operation,
                                 digits, config.operations, config.digits));
  }
  std::vector<Problem> problems;
  const auto numbers = static_cast<uint64_t>(kPowersOfTen[static_cast<size_t>(digits)]);
  const Permutation pairs(numbers * numbers, seed ^ hash_text("data.arithmetic.test"),
                          static_cast<uint64_t>(operation) << 32);
  for (uint64_t i = 0; i < pairs.size() && std::ssize(problems) < count; ++i) {
    const uint64_t pair = pairs(i);
    const auto a = static_cast<int64_t>(pair / numbers);
    const auto b = static_cast<int64_t>(pair % numbers);
    if (std::max(digit_count(a), digit_count(b)) != digits) continue;
    if (side_of(operation, a, b, config.test_fraction) != Split::test) continue;
    problems.push_back(make_problem(operation, a, b, config.reverse));
  }
  return problems;
}

std::unique_ptr<Codec> arithmetic_codec() { return std::make_unique<ArithmeticCodec>(); }

std::unique_ptr<Dataset> arithmetic_dataset(const DataConfig& config, Split split, int64_t context, uint64_t seed) {
  return std::make_unique<ArithmeticDataset>(config, split, context, seed);
}

}  // namespace siamese::data
