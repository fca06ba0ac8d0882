// Answers as OpenAI's clients read them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "siamese/serve/job.h"

namespace siamese::serve {

// What all answers to one request have in common.
struct AnswerHead {
  std::string id;       // "cmpl-..."
  std::string model;    // as /v1/models names it
  int64_t created = 0;  // seconds since 1970
};

// One choice from its pieces.
class ChoiceText {
 public:
  void add(Piece piece);

  std::string text;
  std::vector<TokenScore> scores;
  std::optional<eval::Finish> finish;
};

// The whole answer.
std::string completion_json(const AnswerHead& head, const Job& job, const std::vector<ChoiceText>& choices);
// One event of a stream; `begun`: characters of the choice that were sent before.
std::string chunk_json(const AnswerHead& head, const Piece& piece, bool logprobs, size_t begun);
// The last event with stream_options.include_usage.
std::string usage_chunk_json(const AnswerHead& head, const Job& job);

// {"error": {...}}
std::string error_json(std::string_view message, std::string_view type);
std::string models_json(const AnswerHead& head);

// Characters of UTF-8 text, which is what offsets count.
size_t character_count(std::string_view text);

}  // namespace siamese::serve
