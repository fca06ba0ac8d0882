#include "siamese/eval/task_answers.h"

#include <algorithm>
#include <tuple>

#include "siamese/eval/generate.h"
#include "siamese/eval/task_requests.h"

namespace siamese::eval {
namespace {

constexpr size_t kTogether = 8;  // generation is the same to the bit in batches of up to so many

// Where the first stop sequence begins; npos: there is none yet.
size_t stop_of(const std::string& said, const std::vector<std::string>& stops) {
  size_t first = std::string::npos;
  for (const std::string& stop : stops) {
    if (!stop.empty()) first = std::min(first, said.find(stop));
  }
  return first;
}

}  // namespace

std::vector<size_t> documents_to_answer(const TaskSet& set, bool all) {
  std::vector<size_t> documents;
  if (!set.generates && !all) return documents;
  for (size_t i = 0; i < set.documents.size(); ++i) {
    if (set.documents[i].max_tokens > 0 && !set.documents[i].answers.empty()) documents.push_back(i);
  }
  return documents;
}

std::vector<std::vector<size_t>> answer_batches(const TaskSet& set, std::vector<size_t> documents) {
  const auto key = [&](size_t at) {
    return std::tuple(set.documents[at].max_tokens, set.documents[at].prompt.size(), at);
  };
  std::sort(documents.begin(), documents.end(), [&](size_t a, size_t b) { return key(a) < key(b); });
  std::vector<std::vector<size_t>> batches;
  for (const size_t at : documents) {
    const bool another = batches.empty() || batches.back().size() == kTogether ||
                         set.documents[batches.back().front()].max_tokens != set.documents[at].max_tokens;
    if (another) batches.emplace_back();
    batches.back().push_back(at);
  }
  return batches;
}

std::vector<std::string> generate_answers(const models::LanguageModel& model, const Tasks& tasks, const TaskSet& set,
                                          const std::vector<size_t>& documents) {
  std::vector<std::vector<int64_t>> prompts;
  for (const size_t at : documents) prompts.push_back(encode_prompt(tasks, set, set.documents[at], model.config()));
  std::vector<std::vector<text::TokenId>> ids(documents.size());
  std::vector<std::string> said(documents.size());
  const Sampling greedy{.max_tokens = set.documents[documents.front()].max_tokens};
  generate(model, prompts, greedy, [&](size_t sequence, int64_t token) {
    if (tasks.end_of_text() && token == static_cast<int64_t>(*tasks.end_of_text())) return false;
    auto& own = ids[sequence];
    own.push_back(static_cast<text::TokenId>(token));
    if (tasks.tokenizer().token_of(own.back()) == nullptr) {  // a model may have room for more tokens
      own.pop_back();
      return false;
    }
    said[sequence] = tasks.tokenizer().decode(own);
    const size_t stop = stop_of(said[sequence], set.documents[documents[sequence]].stop);
    if (stop == std::string::npos) return true;
    said[sequence].resize(stop);
    return false;
  });
  return said;
}

}  // namespace siamese::eval
