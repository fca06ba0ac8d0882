#include "siamese/serve/completion_request.h"

#include <array>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "siamese/base/check.h"
#include "siamese/io/message.h"
#include "siamese/io/strict_json.h"

namespace siamese::serve {
namespace {

using nlohmann::json;

constexpr const char* kBody = "body";
constexpr int kDepth = 4;  // the object, a list of prompts, the ids of one, an id

[[noreturn]] void wrong(const std::string& key, const std::string& expected, const json& got) {
  throw DataError(fmt::format("{}: expected {}, got {}", key, expected, io::in_quotes(io::json_text(got))));
}

int64_t whole(const std::string& key, const json& value, int64_t least, int64_t most) {
  const bool ok = value.is_number_integer() && value >= least && value <= most;
  if (!ok) wrong(key, fmt::format("a whole number from {} to {}", least, most), value);
  return value.get<int64_t>();
}

double number(const std::string& key, const json& value, double least, double most) {
  const bool ok = value.is_number() && value.get<double>() >= least && value.get<double>() <= most;
  if (!ok) wrong(key, fmt::format("a number from {} to {}", least, most), value);
  return value.get<double>();
}

bool flag(const std::string& key, const json& value) {
  if (!value.is_boolean()) wrong(key, "true or false", value);
  return value.get<bool>();
}

std::vector<int64_t> ids(const json& list) {
  std::vector<int64_t> all;
  for (const json& id : list) all.push_back(whole("prompt: a token id", id, 0, int64_t{1} << 40));
  return all;
}

// A text, ids, or a list of either.
std::vector<Prompt> prompts_of(const json& value) {
  constexpr const char* kExpected = "text, token ids, or a list of either";
  if (value.is_string()) return {value.get<std::string>()};
  if (!value.is_array() || value.empty()) wrong("prompt", kExpected, value);
  if (value.front().is_number()) return {ids(value)};
  std::vector<Prompt> all;
  for (const json& one : value) {
    if (one.is_string()) {
      all.emplace_back(one.get<std::string>());
    } else if (one.is_array()) {
      all.emplace_back(ids(one));
    } else {
      wrong("prompt", kExpected, one);
    }
  }
  return all;
}

std::vector<std::string> stops_of(const json& value, const RequestLimits& limits) {
  std::vector<std::string> all;
  if (value.is_string()) {
    all = {value.get<std::string>()};
  } else if (value.is_array()) {
    for (const json& one : value) {
      if (!one.is_string()) wrong("stop", "text or a list of texts", one);
      all.push_back(one.get<std::string>());
    }
  } else {
    wrong("stop", "text or a list of texts", value);
  }
  if (all.size() > limits.stops) {
    throw DataError(fmt::format("stop: expected at most {} texts, got {}", limits.stops, all.size()));
  }
  for (const std::string& stop : all) {
    if (stop.empty() || stop.size() > limits.stop_bytes) {
      throw DataError(fmt::format("stop: expected texts of 1 to {} bytes, got {}", limits.stop_bytes, stop.size()));
    }
  }
  return all;
}

void read_stream_options(const json& value, CompletionRequest& request) {
  if (!value.is_object()) wrong("stream_options", "an object", value);
  for (const auto& [key, inner] : value.items()) {
    if (key != "include_usage") throw DataError("stream_options: the key " + io::in_quotes(key) + " is not known");
    request.include_usage = flag("stream_options.include_usage", inner);
  }
}

// Keys that would change the answer in a way that we have not, and may only say that they do not.
bool is_neutral(const std::string& key, const json& value, const CompletionRequest& request) {
  if (key == "frequency_penalty" || key == "presence_penalty") {
    if (value != 0) wrong(key, "0: penalties are not known here", value);
    return true;
  }
  if (key == "best_of") {
    if (value != request.n) wrong(key, "as many as n", value);
    return true;
  }
  if (key == "logit_bias") {
    if (!value.is_object() || !value.empty()) wrong(key, "an empty object: a bias is not known here", value);
    return true;
  }
  if (key == "suffix") {
    if (value != "") wrong(key, "none: text after the completion is not known here", value);
    return true;
  }
  return key == "model" || key == "user";  // which is served, and who asks: no matter here
}

void read_key(const std::string& key, const json& value, const RequestLimits& limits, CompletionRequest& request) {
  if (value.is_null()) return;  // as if it were not there
  if (key == "prompt") {
    request.prompts = prompts_of(value);
  } else if (key == "max_tokens") {
    request.max_tokens = whole(key, value, 0, limits.max_tokens);
  } else if (key == "temperature") {
    request.temperature = number(key, value, 0, 1e6);
  } else if (key == "top_p") {
    request.top_p = number(key, value, 1e-9, 1);
  } else if (key == "top_k") {
    request.top_k = whole(key, value, 0, int64_t{1} << 40);
  } else if (key == "seed") {
    if (!value.is_number_integer()) wrong(key, "a whole number", value);
    request.seed = value.is_number_unsigned() ? value.get<uint64_t>() : static_cast<uint64_t>(value.get<int64_t>());
  } else if (key == "stop") {
    request.stop = stops_of(value, limits);
  } else if (key == "n") {
    request.n = whole(key, value, 1, limits.sequences);
  } else if (key == "logprobs") {
    request.logprobs = whole(key, value, 0, limits.logprobs);
  } else if (key == "echo") {
    request.echo = flag(key, value);
  } else if (key == "stream") {
    request.stream = flag(key, value);
  } else if (key == "stream_options") {
    read_stream_options(value, request);
  } else if (!is_neutral(key, value, request)) {
    throw DataError("the key " + io::in_quotes(key) + " is not known");
  }
}

}  // namespace

CompletionRequest parse_completion_request(std::string_view text, const RequestLimits& limits) {
  const json body = io::read_json(text, kBody, kDepth);
  if (!body.is_object()) throw DataError("body: expected a JSON object");
  CompletionRequest request;
  // n first: best_of is compared with it.
  if (const auto n = body.find("n"); n != body.end()) read_key("n", *n, limits, request);
  for (const auto& [key, value] : body.items()) read_key(key, value, limits, request);
  if (request.prompts.empty()) throw DataError("prompt: missing");
  const int64_t sequences = static_cast<int64_t>(request.prompts.size()) * request.n;
  if (sequences > limits.sequences) {
    throw DataError(fmt::format("prompt: expected at most {} prompts x n, got {}", limits.sequences, sequences));
  }
  if (request.max_tokens == 0 && !request.echo) {
    throw DataError("max_tokens: expected at least 1 without echo, got 0");
  }
  return request;
}

}  // namespace siamese::serve
