// The body of POST /v1/completions, as OpenAI's clients send it: what is asked, or why it cannot be.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace siamese::serve {

using Prompt = std::variant<std::string, std::vector<int64_t>>;  // text or token ids

struct CompletionRequest {
  std::vector<Prompt> prompts;  // at least one
  int64_t max_tokens = 16;      // 0: the prompt is scored alone
  double temperature = 1;
  double top_p = 1;
  int64_t top_k = 0;  // 0: all
  uint64_t seed = 0;
  std::vector<std::string> stop;
  int64_t n = 1;
  std::optional<int64_t> logprobs;  // so many of the likeliest tokens beside each
  bool echo = false;
  bool stream = false;
  bool include_usage = false;  // of a stream
};

// What a request may ask for at most.
struct RequestLimits {
  int64_t sequences = 256;    // prompts x n
  int64_t max_tokens = 4096;  //
  int64_t logprobs = 20;
  size_t stops = 16;
  size_t stop_bytes = 1024;
};

// Error with one line that names the key, what was expected and what came: bad JSON, a key that is not known, a value
// of another type or out of range.
CompletionRequest parse_completion_request(std::string_view json, const RequestLimits& limits);

}  // namespace siamese::serve
