#include "siamese/serve/completion_response.h"

#include <algorithm>
#include <iterator>

#include <nlohmann/json.hpp>

#include "siamese/io/strict_json.h"

namespace siamese::serve {
namespace {

using Json = nlohmann::ordered_json;

Json finish_json(const std::optional<eval::Finish>& finish) {
  if (!finish) return nullptr;
  return *finish == eval::Finish::length ? "length" : "stop";
}

Json logprobs_json(const std::vector<TokenScore>& scores, size_t begun) {
  Json tokens = Json::array(), values = Json::array(), top = Json::array(), offsets = Json::array();
  size_t offset = begun;
  for (const TokenScore& score : scores) {
    tokens.push_back(score.text);
    values.push_back(score.logprob ? Json(*score.logprob) : Json(nullptr));
    Json likeliest = score.logprob ? Json::object() : Json(nullptr);
    for (const auto& [text, logprob] : score.top) likeliest[text] = logprob;
    top.push_back(std::move(likeliest));
    offsets.push_back(offset);
    offset += character_count(score.text);
  }
  return {{"tokens", std::move(tokens)},
          {"token_logprobs", std::move(values)},
          {"top_logprobs", std::move(top)},
          {"text_offset", std::move(offsets)}};
}

Json head_json(const AnswerHead& head) {
  return {{"id", head.id}, {"object", "text_completion"}, {"created", head.created}, {"model", head.model}};
}

Json usage_json(const Job& job) {
  const int64_t prompt = job.prompt_tokens(), made = job.made_tokens();
  return {{"prompt_tokens", prompt}, {"completion_tokens", made}, {"total_tokens", prompt + made}};
}

}  // namespace

size_t character_count(std::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }));
}

void ChoiceText::add(Piece piece) {
  text += piece.text;
  std::move(piece.scores.begin(), piece.scores.end(), std::back_inserter(scores));
  if (piece.finish) finish = piece.finish;
}

std::string completion_json(const AnswerHead& head, const Job& job, const std::vector<ChoiceText>& choices) {
  Json list = Json::array();
  for (size_t i = 0; i < choices.size(); ++i) {
    list.push_back({{"text", choices[i].text},
                    {"index", i},
                    {"logprobs", job.request().logprobs ? logprobs_json(choices[i].scores, 0) : Json(nullptr)},
                    {"finish_reason", finish_json(choices[i].finish)}});
  }
  Json answer = head_json(head);
  answer["choices"] = std::move(list);
  answer["usage"] = usage_json(job);
  return io::json_text(answer);
}

std::string chunk_json(const AnswerHead& head, const Piece& piece, bool logprobs, size_t begun) {
  Json answer = head_json(head);
  answer["choices"] = Json::array();
  answer["choices"].push_back({{"text", piece.text},
                               {"index", piece.choice},
                               {"logprobs", logprobs ? logprobs_json(piece.scores, begun) : Json(nullptr)},
                               {"finish_reason", finish_json(piece.finish)}});
  return io::json_text(answer);
}

std::string usage_chunk_json(const AnswerHead& head, const Job& job) {
  Json answer = head_json(head);
  answer["choices"] = Json::array();
  answer["usage"] = usage_json(job);
  return io::json_text(answer);
}

std::string error_json(std::string_view message, std::string_view type) {
  const Json error = {
      {"message", std::string(message)}, {"type", std::string(type)}, {"param", nullptr}, {"code", nullptr}};
  return io::json_text(Json{{"error", error}});
}

std::string models_json(const AnswerHead& head) {
  Json list = Json::array();
  list.push_back({{"id", head.model}, {"object", "model"}, {"created", head.created}, {"owned_by", "siamese"}});
  return io::json_text(Json{{"object", "list"}, {"data", std::move(list)}});
}

}  // namespace siamese::serve
