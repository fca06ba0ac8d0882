#include "siamese/eval/task_requests.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "siamese/base/check.h"

namespace siamese::eval {
namespace {

using Ids = std::vector<int64_t>;

class TaskEncoder {
 public:
  TaskEncoder(const Tasks& tasks, const TaskSet& set, const models::ModelConfig& model)
      : set_(set), model_(model), encoder_(tasks.tokenizer()) {
    const auto& before = tasks.tokenizer().post_processor().before();
    begin_.assign(before.begin(), before.end());
  }

  Ids continuation(const TaskChoice& choice) {
    Ids ids = encode(choice.continuation, choice.line);
    if (ids.empty()) throw DataError(where(choice.line) + "request.continuation: has no token");
    return ids;
  }

  // Of the same text as before it is not made again: choices of a document share it.
  const Ids& context(const std::string& words, uint64_t line) {
    if (known_ && words == context_words_) return context_;
    context_ = encode(words, line);
    if (!std::equal(begin_.begin(), begin_.end(), context_.begin(),
                    context_.begin() + static_cast<std::ptrdiff_t>(std::min(begin_.size(), context_.size())))) {
      context_.insert(context_.begin(), begin_.begin(), begin_.end());
    }
    if (context_.empty()) {
      throw DataError(where(line) + "request.context: has no token, and the tokenizer begins a text with none");
    }
    context_words_ = words;
    known_ = true;
    return context_;
  }

  Ids encode(const std::string& words, uint64_t line) {
    std::vector<text::TokenId> ids;
    try {
      ids = encoder_.encode(words, text::Special::left_out);
    } catch (const DataError& error) {
      throw DataError(where(line) + error.what());
    }
    for (const text::TokenId id : ids) {
      if (static_cast<int64_t>(id) < model_.vocab) continue;
      throw DataError(fmt::format("{}token {} of the tokenizer, but model.vocab is {}: not this model's tokenizer",
                                  where(line), id, model_.vocab));
    }
    return {ids.begin(), ids.end()};
  }

 private:
  std::string where(uint64_t line) const { return fmt::format("{}: line {}: ", set_.file.string(), line); }

  const TaskSet& set_;
  const models::ModelConfig& model_;
  text::Encoder encoder_;
  Ids begin_;
  bool known_ = false;
  std::string context_words_;
  Ids context_;
};

// The queries of a document's choices; none when one does not fit.
QueryGroup encode_group(TaskEncoder& encoder, const std::vector<TaskChoice>& choices, int64_t longest) {
  QueryGroup group;
  for (const TaskChoice& choice : choices) {
    auto query = make_query(encoder.context(choice.context, choice.line), encoder.continuation(choice), longest);
    if (!query) return {};
    group.push_back(std::move(*query));
  }
  return group;
}

// The continuation of a query.
std::span<const int64_t> end_of(const Query& query) {
  return std::span(query.tokens).last(static_cast<size_t>(query.scored));
}

}  // namespace

int64_t TaskRequests::count() const {
  int64_t all = 0;
  for (const TaskPart& part : parts) {
    for (const QueryGroup& group : part.groups) all += static_cast<int64_t>(group.size());
  }
  return all;
}

TaskRequests encode_requests(const Tasks& tasks, const TaskSet& set, const models::ModelConfig& model) {
  TaskEncoder encoder(tasks, set, model);
  TaskRequests requests;
  TaskPart choices{"choices", {}, {}}, unconditional{"unconditional", {}, {}}, domain{"domain", {}, {}};
  const bool alone = set.of_choices && set.has_unconditional();
  const Ids space = encoder.encode(" ", 0);
  const bool of_domain = set.of_choices && (alone || set.primary == "acc_uncond") && !space.empty();
  for (size_t at = 0; at < set.documents.size(); ++at) {
    const TaskDocument& document = set.documents[at];
    if (document.choices.empty()) {
      requests.asked.push_back(at);
      requests.token_counts.emplace_back();
      continue;
    }
    QueryGroup group = encode_group(encoder, document.choices, model.context);
    QueryGroup other;
    if (alone) other = encode_group(encoder, document.unconditional, model.context);
    if (group.empty() || (alone && other.empty())) continue;
    requests.asked.push_back(at);
    auto& counts = requests.token_counts.emplace_back();
    for (const Query& query : group) counts.push_back(query.scored);
    if (of_domain) {
      domain.documents.push_back(at);
      auto& queries = domain.groups.emplace_back();
      for (const Query& query : group) queries.push_back(*make_query(space, end_of(query), model.context));
    }
    choices.documents.push_back(at);
    choices.groups.push_back(std::move(group));
    if (alone) {
      unconditional.documents.push_back(at);
      unconditional.groups.push_back(std::move(other));
    }
  }
  for (TaskPart* const part : {&choices, &unconditional, &domain}) {
    if (!part->groups.empty()) requests.parts.push_back(std::move(*part));
  }
  return requests;
}

Ids encode_prompt(const Tasks& tasks, const TaskSet& set, const TaskDocument& document,
                  const models::ModelConfig& model) {
  TaskEncoder encoder(tasks, set, model);
  const Ids& whole = encoder.context(document.prompt, document.line);
  const int64_t room = std::max<int64_t>({1, model.context / 2, model.context - document.max_tokens});
  const int64_t kept = std::min<int64_t>(room, static_cast<int64_t>(whole.size()));
  return {whole.end() - kept, whole.end()};
}

}  // namespace siamese::eval
