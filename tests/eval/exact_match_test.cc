#include "siamese/eval/exact_match.h"

#include "tests/models/small_lm.h"

#include "siamese/data/codec.h"
#include "siamese/eval/generate.h"

namespace siamese::eval {
namespace {

models::ModelConfig arithmetic_model() {
  models::ModelConfig config = models::small_config("siamese");
  config.vocab = 16;
  config.context = 24;
  return config;
}

// What the decoding loop says, character by character.
bool greedy_answer_is_right(const models::LanguageModel& model, const data::Problem& problem) {
  const auto codec = data::arithmetic_codec();
  std::string answer;
  generate(model, codec->encode(problem.prompt), {.max_tokens = static_cast<int64_t>(problem.answer.size())},
           [&](int64_t token) {
             answer += codec->decode(std::span(&token, 1));
             return true;
           });
  return answer == problem.answer;
}

TEST(ExactMatch, OnePassEqualsTheDecodingLoop) {
  const auto model = models::make_lm(arithmetic_model(), 4);
  const auto codec = data::arithmetic_codec();
  // Problems whose "answer" is what the model really says, some spoilt in one character.
  std::vector<data::Problem> problems;
  for (int64_t a = 0; a < 40; ++a) {
    data::Problem problem = data::make_problem('+', a, 3 * a, false);
    std::string said;
    generate(*model, codec->encode(problem.prompt), {.max_tokens = 3}, [&](int64_t token) {
      said += codec->decode(std::span(&token, 1));
      return true;
    });
    problem.answer = said;
    if (a % 3 == 0)
      problem.answer[static_cast<size_t>(a / 3 % 3)] = said[static_cast<size_t>(a / 3 % 3)] == '7' ? '8' : '7';
    problems.push_back(problem);
  }
  const auto results = answered_exactly(*model, problems);
  int right = 0;
  for (size_t i = 0; i < problems.size(); ++i) {
    EXPECT_EQ(results[i], greedy_answer_is_right(*model, problems[i])) << i;
    right += results[i] ? 1 : 0;
  }
  EXPECT_EQ(right, 26);  // all but the spoilt ones
}

TEST(ExactMatch, GroupsByOperationAndDigits) {
  data::DataConfig config;
  config.operations = "+*";
  config.digits = 2;
  const auto groups = exact_match(*models::make_lm(arithmetic_model()), config, 20, 1);
  ASSERT_EQ(groups.size(), 4U);
  EXPECT_EQ(groups[3].operation, '*');
  EXPECT_EQ(groups[3].digits, 2);
  EXPECT_EQ(groups[3].count, 20);
  for (const auto& group : groups) EXPECT_LE(group.correct, group.count);
}

}  // namespace
}  // namespace siamese::eval
