#include "siamese/data/arithmetic.h"

#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "tests/data/support.h"
#include <gtest/gtest.h>

namespace siamese::data {
namespace {

constexpr int64_t kArithmeticContext = 128;

DataConfig digits_config(int digits) {
  DataConfig config;
  config.digits = digits;
  return config;
}

std::unique_ptr<Dataset> open_arithmetic(const DataConfig& config, Split split, uint64_t seed = 1,
                                         int64_t context = kArithmeticContext) {
  return open_dataset(config, split, context, 16, seed);
}

std::string arithmetic_at(const Dataset& dataset, uint64_t position, int64_t context = kArithmeticContext) {
  return arithmetic_codec()->decode(sample_at(dataset, position, context).tokens);
}

struct Parsed {
  int64_t a;
  char operation;
  int64_t b;
  int64_t answer;
  auto operator<=>(const Parsed&) const = default;
};

// Takes a number off the front of `line`: no leading zeros, a minus only where it is allowed, no "-0".
std::optional<int64_t> take_number(std::string_view& line, bool may_be_negative) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
  const std::string_view text = line.substr(0, static_cast<size_t>(end - line.data()));
  if (error != std::errc{} || text != std::to_string(number) || (number < 0 && !may_be_negative)) return std::nullopt;
  line.remove_prefix(text.size());
  return number;
}

// "12+34=46" and nothing else.
std::optional<Parsed> parse(std::string_view line) {
  const auto a = take_number(line, false);
  if (!a || line.empty() || std::string_view("+-*").find(line.front()) == std::string_view::npos) return std::nullopt;
  const char operation = line.front();
  line.remove_prefix(1);
  const auto b = take_number(line, false);
  if (!b || line.empty() || line.front() != '=') return std::nullopt;
  line.remove_prefix(1);
  const auto answer = take_number(line, true);
  if (!answer || !line.empty()) return std::nullopt;
  return Parsed{*a, operation, *b, *answer};
}

// All problems of `positions` samples that were not cut off, read back from their text.
std::vector<Parsed> problems_in(const Dataset& dataset, uint64_t positions) {
  std::vector<Parsed> problems;
  for (uint64_t position = 0; position < positions; ++position) {
    const std::string text = arithmetic_at(dataset, position);
    EXPECT_EQ(text.front(), '\n');
    std::istringstream lines(text.substr(1, text.rfind('\n')));
    for (std::string line; std::getline(lines, line);) {
      const auto problem = parse(line);
      if (!problem) {
        ADD_FAILURE() << "not a problem: '" << line << "'";
        return problems;
      }
      problems.push_back(*problem);
    }
  }
  return problems;
}

int64_t compute(int64_t a, char operation, int64_t b) {
  return operation == '+' ? a + b : operation == '-' ? a - b : a * b;
}

TEST(Arithmetic, EveryAnswerIsRight) {
  for (const Split split : {Split::train, Split::test}) {
    const auto problems = problems_in(*open_arithmetic(DataConfig{}, split), 500);
    EXPECT_GT(problems.size(), 4000U);
    for (const auto& p : problems) ASSERT_EQ(p.answer, compute(p.a, p.operation, p.b)) << p.a << p.operation << p.b;
  }
}

// Everything that can be asked with up to two digits, against everything that many samples of each side show.
TEST(Arithmetic, TrainAndTestNeverShareAProblem) {
  const DataConfig config = digits_config(2);
  const auto seen = [&](Split split) {
    std::set<std::tuple<char, int64_t, int64_t>> problems;
    for (const uint64_t seed : {1U, 2U}) {
      for (const auto& p : problems_in(*open_arithmetic(config, split, seed), 16000))
        problems.insert({p.operation, p.a, p.b});
    }
    return problems;
  };
  const auto train = seen(Split::train);
  const auto test = seen(Split::test);
  int64_t test_side = 0;
  int64_t total = 0;
  for (const char operation : {'+', '-', '*'}) {
    for (int64_t a = 0; a < 100; ++a) {
      for (int64_t b = 0; b < 100; ++b) {
        const bool in_train = train.contains({operation, a, b}) || train.contains({operation, b, a});
        const bool in_test = test.contains({operation, a, b}) || test.contains({operation, b, a});
        ASSERT_FALSE(in_train && in_test) << a << operation << b;
        const bool is_test = side_of(operation, a, b, config.test_fraction) == Split::test;
        ASSERT_FALSE(is_test ? in_train : in_test) << a << operation << b;
        test_side += is_test;
        ++total;
      }
    }
  }
  EXPECT_NEAR(static_cast<double>(test_side) / static_cast<double>(total), 0.1, 0.01);
  // The two sides were really looked at: nearly all of each was drawn.
  EXPECT_GT(static_cast<int64_t>(test.size()), test_side * 99 / 100);
  EXPECT_GT(static_cast<int64_t>(train.size()), (total - test_side) * 95 / 100);
}

TEST(Arithmetic, SwappedOperandsAreOnTheSameSide) {
  int differing_operations = 0;
  for (int64_t a = 0; a < 200; ++a) {
    for (int64_t b = 0; b < a; ++b) {
      for (const char operation : {'+', '-', '*'}) {
        ASSERT_EQ(side_of(operation, a, b, 0.3), side_of(operation, b, a, 0.3)) << a << operation << b;
      }
      differing_operations += side_of('+', a, b, 0.3) != side_of('*', a, b, 0.3);
    }
  }
  EXPECT_GT(differing_operations, 1000);  // but each operation is split for itself
}

TEST(Arithmetic, ALargerTestFractionKeepsTheTestProblems) {
  for (int64_t a = 0; a < 100; ++a) {
    if (side_of('+', a, 7, 0.1) != Split::test) continue;
    EXPECT_EQ(side_of('+', a, 7, 0.2), Split::test);
  }
}

TEST(Arithmetic, OperationsAndDigitCountsAreUniform) {
  const auto problems = problems_in(*open_arithmetic(DataConfig{}, Split::train), 4000);
  std::map<char, double> operations;
  std::map<size_t, double> digits;
  int64_t zeros = 0;
  const auto share = 1.0 / static_cast<double>(problems.size());
  for (const auto& p : problems) {
    operations[p.operation] += share;
    digits[std::to_string(p.a).size() * 10 + std::to_string(p.b).size()] += share;
    zeros += p.a == 0;
  }
  ASSERT_EQ(operations.size(), 3U);
  // Longer problems are cut off more often, and one operation's few short ones may fall to the test side.
  for (const auto& [operation, part] : operations) EXPECT_NEAR(part, 1.0 / 3, 0.015) << operation;
  ASSERT_EQ(digits.size(), 16U);
  for (const auto& [pair, part] : digits) EXPECT_NEAR(part, 1.0 / 16, 0.012) << pair;
  EXPECT_NEAR(static_cast<double>(zeros) * share, 0.025, 0.005);
}

TEST(Arithmetic, OnlyTheChosenOperationsAndDigitsOccur) {
  DataConfig config = digits_config(3);
  config.operations = "*";
  bool three = false;
  for (const auto& p : problems_in(*open_arithmetic(config, Split::train), 200)) {
    ASSERT_EQ(p.operation, '*');
    ASSERT_LT(std::max(p.a, p.b), 1000);
    three |= p.a > 99;
  }
  EXPECT_TRUE(three);
}

TEST(Arithmetic, WeightsMarkAnswersAndTheirNewline) {
  for (const int64_t context : {1, 2, 7, 50, 128}) {  // cut anywhere
    const auto dataset = open_arithmetic(DataConfig{}, Split::train, 3, context);
    for (uint64_t position = 0; position < 50; ++position) {
      const Sample sample = sample_at(*dataset, position, context);
      const std::string text = arithmetic_codec()->decode(sample.tokens);
      bool in_answer = false;
      for (size_t i = 1; i < text.size(); ++i) {
        ASSERT_EQ(sample.weights[i - 1], in_answer ? 1.0F : 0.0F) << text << " at " << i;
        if (text[i] == '=') in_answer = true;
        if (text[i] == '\n') in_answer = false;
      }
    }
  }
}

TEST(Arithmetic, LossOnAllWeighsEverything) {
  DataConfig config;
  const Sample answers = sample_at(*open_arithmetic(config, Split::train), 5, kArithmeticContext);
  config.loss = LossOn::all;
  const Sample all = sample_at(*open_arithmetic(config, Split::train), 5, kArithmeticContext);
  EXPECT_EQ(all.tokens, answers.tokens);
  EXPECT_EQ(all.weights, std::vector<float>(kArithmeticContext, 1.0F));
}

TEST(Arithmetic, ASampleIsAFunctionOfSeedAndPosition) {
  const auto first = open_arithmetic(DataConfig{}, Split::train, 1);
  const auto again = open_arithmetic(DataConfig{}, Split::train, 1);
  const auto other = open_arithmetic(DataConfig{}, Split::train, 2);
  std::set<std::string> different;
  for (const uint64_t position : {uint64_t{0}, uint64_t{1}, uint64_t{77}, uint64_t{1} << 40}) {
    const std::string text = arithmetic_at(*first, position);
    EXPECT_EQ(arithmetic_at(*again, position), text);
    EXPECT_EQ(arithmetic_at(*first, position), text);
    EXPECT_NE(arithmetic_at(*other, position), text);
    different.insert(text);
  }
  EXPECT_EQ(different.size(), 4U);
}

TEST(Arithmetic, TheFirstSampleIsWhatItAlwaysWas) {
  // Golden: a change here changes what every seed means, and old runs no longer resume.
  EXPECT_EQ(arithmetic_at(*open_arithmetic(DataConfig{}, Split::train, 1, 40), 0, 40),
            "\n6+0=6\n9+47=56\n62+6821=6883\n499-4=495\n1*8");
}

TEST(Arithmetic, ProblemsSpellPromptAndAnswer) {
  const Problem sum = make_problem('+', 12, 34, false);
  EXPECT_EQ(sum.prompt, "\n12+34=");
  EXPECT_EQ(sum.answer, "46\n");
  EXPECT_EQ(sum.digits, 2);
  EXPECT_EQ(make_problem('-', 3, 12, false).prompt, "\n3-12=");
  EXPECT_EQ(make_problem('-', 3, 12, false).answer, "-9\n");
  EXPECT_EQ(make_problem('-', 5, 5, false).answer, "0\n");
  EXPECT_EQ(make_problem('*', 9999, 9999, false).answer, "99980001\n");
  EXPECT_EQ(make_problem('*', 0, 9999, false).digits, 4);
}

TEST(Arithmetic, ReverseTurnsTheDigitsButNotTheSign) {
  EXPECT_EQ(make_problem('+', 12, 34, true).answer, "64\n");
  EXPECT_EQ(make_problem('+', 60, 60, true).answer, "021\n");
  EXPECT_EQ(make_problem('-', 3, 15, true).answer, "-21\n");
  DataConfig config = digits_config(1);
  config.operations = "*";
  config.reverse = true;
  const std::string text = arithmetic_at(*open_arithmetic(config, Split::train), 0);
  int turned = 0;
  for (size_t at = text.find('='); at != std::string::npos; at = text.find('=', at + 1)) {
    const size_t end = text.find('\n', at);
    if (end != at + 3) continue;  // answers of two digits: "7*8=65"
    const int product = (text[at - 3] - '0') * (text[at - 1] - '0');
    EXPECT_EQ(product, (text[at + 1] - '0') + 10 * (text[at + 2] - '0')) << text;
    ++turned;
  }
  EXPECT_GT(turned, 5);
}

TEST(TestProblems, AreDistinctOfTheGroupAndOfTheTestSide) {
  const DataConfig config;
  for (const char operation : {'+', '-', '*'}) {
    for (int digits = 2; digits <= 4; ++digits) {
      const auto problems = test_problems(config, operation, digits, 300, 5);
      ASSERT_EQ(problems.size(), 300U);
      std::set<std::string> prompts;
      for (const auto& p : problems) {
        EXPECT_EQ(p.operation, operation);
        EXPECT_EQ(p.digits, digits);
        EXPECT_EQ(static_cast<int>(std::to_string(std::max(p.a, p.b)).size()), digits);
        EXPECT_EQ(side_of(operation, p.a, p.b, config.test_fraction), Split::test);
        EXPECT_EQ(p.answer, std::to_string(compute(p.a, operation, p.b)) + "\n");
        prompts.insert(p.prompt);
      }
      EXPECT_EQ(prompts.size(), 300U);
    }
  }
}

TEST(TestProblems, ASmallGroupIsGivenWhole) {
  const DataConfig config;
  for (const char operation : {'+', '-', '*'}) {
    for (const auto& [digits, limit] : {std::pair{1, int64_t{10}}, std::pair{2, int64_t{100}}}) {
      std::set<std::pair<int64_t, int64_t>> expected;
      for (int64_t a = 0; a < limit; ++a) {
        for (int64_t b = 0; b < limit; ++b) {
          const bool in_group = std::max(a, b) >= (digits == 1 ? 0 : limit / 10);
          if (in_group && side_of(operation, a, b, config.test_fraction) == Split::test) expected.insert({a, b});
        }
      }
      EXPECT_FALSE(expected.empty()) << "the default leaves nothing to test for " << operation << digits;
      std::set<std::pair<int64_t, int64_t>> got;
      const auto problems = test_problems(config, operation, digits, 1000000, 5);
      for (const auto& p : problems) got.insert({p.a, p.b});
      EXPECT_EQ(problems.size(), expected.size());
      EXPECT_EQ(got, expected);
    }
  }
}

TEST(TestProblems, DependOnTheSeedOnly) {
  const auto prompts = [](uint64_t seed) {
    std::vector<std::string> list;
    for (const auto& p : test_problems(DataConfig{}, '+', 4, 20, seed)) list.push_back(p.prompt);
    return list;
  };
  EXPECT_EQ(prompts(1), prompts(1));
  EXPECT_NE(prompts(1), prompts(2));
}

TEST(TestProblems, AGroupOutsideTheConfigIsRefused) {
  DataConfig config = digits_config(2);
  config.operations = "+";
  EXPECT_EQ(error_of<UsageError>([&] { test_problems(config, '*', 2, 1, 0); }),
            "no problems '*' of 2 digits: data.operations is '+', data.digits 2");
  EXPECT_EQ(error_of<UsageError>([&] { test_problems(config, '+', 3, 1, 0); }),
            "no problems '+' of 3 digits: data.operations is '+', data.digits 2");
}

TEST(Arithmetic, AFractionThatLeavesNothingIsRefused) {
  DataConfig config = digits_config(1);
  config.test_fraction = 1e-9;
  EXPECT_EQ(error_of<UsageError>([&] { open_arithmetic(config, Split::test); }),
            "data.test_fraction: 1e-09 leaves no test problems of up to 1 digits");
  EXPECT_NO_THROW(open_arithmetic(config, Split::train));
}

TEST(Arithmetic, ASmallModelVocabularyIsRefused) {
  EXPECT_EQ(error_of<UsageError>([] { open_dataset(DataConfig{}, Split::train, 8, 15, 0); }),
            "model.vocab: expected at least 16 for data.source=arithmetic, got 15");
  EXPECT_EQ(error_of<UsageError>([] { open_dataset(DataConfig{}, Split::train, 0, 16, 0); }),
            "model.context: expected at least 1, got 0");
}

TEST(Arithmetic, DescribesItself) {
  const auto dataset = open_arithmetic(DataConfig{}, Split::test);
  EXPECT_EQ(dataset->describe(), "arithmetic test: + - * of 1 to 4 digits, 10% of all problems, loss on answers");
  EXPECT_EQ(dataset->vocab(), 16);
  EXPECT_EQ(dataset->samples(), 0);
}

}  // namespace
}  // namespace siamese::data
