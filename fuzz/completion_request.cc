#include "siamese/serve/completion_request.h"

#include "fuzz/contract.h"

namespace siamese::fuzz {

// What passes is within the limits, whatever the body was.
void check_completion_request(Bytes bytes) {
  reads_or_refuses([&] {
    const serve::RequestLimits limits{.sequences = 8, .max_tokens = 100};
    const serve::CompletionRequest request = serve::parse_completion_request(text_of(bytes), limits);
    require(!request.prompts.empty(), "there is a prompt");
    require(request.n >= 1 && static_cast<int64_t>(request.prompts.size()) * request.n <= limits.sequences,
            "prompts x n are within the limit");
    require(request.max_tokens >= (request.echo ? 0 : 1) && request.max_tokens <= limits.max_tokens, "max_tokens is");
    require(request.temperature >= 0 && request.top_p > 0 && request.top_p <= 1 && request.top_k >= 0,
            "the sampling is possible");
    require(!request.logprobs || (*request.logprobs >= 0 && *request.logprobs <= limits.logprobs), "logprobs is");
    for (const std::string& stop : request.stop) require(!stop.empty(), "no stop is empty");
    for (const serve::Prompt& prompt : request.prompts) {
      const auto* const ids = std::get_if<std::vector<int64_t>>(&prompt);
      if (ids == nullptr) continue;
      for (const int64_t id : *ids) require(id >= 0, "no id is negative");
    }
  });
}

}  // namespace siamese::fuzz
