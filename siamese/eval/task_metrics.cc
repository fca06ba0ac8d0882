#include "siamese/eval/task_metrics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "siamese/base/utf8.h"

namespace siamese::eval {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kOlmoNames = {
    {{"acc_raw", "acc"},
     {"acc_per_char", "len_norm"},
     {"acc_per_token", "acc_per_token"},
     {"acc_uncond", "acc_uncond"},
     {"logits_per_byte", "bpb"},
     {"bits_per_byte", "bpb"},
     {"bits_per_byte_corr", "bpb"},
     {"exact_match", kExactMatch}}};

int64_t characters_of(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

// The share of documents whose best choice is the right one; NaN when a score is not there.
template <class Score>
double accuracy(std::span<const DocumentScore> documents, Score score) {
  int64_t right = 0;
  for (const DocumentScore& document : documents) {
    int64_t best = 0;
    float most = 0;
    for (size_t i = 0; i < document.choices.size(); ++i) {
      const double exact = score(document.choices[i]);
      if (std::isnan(exact)) return runs::kNone;
      // In float32, as the package compares them: equal choices are then equal here too.
      const auto value = static_cast<float>(exact);
      if (i == 0 || value > most) {
        best = static_cast<int64_t>(i);
        most = value;
      }
    }
    right += best == document.label ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(documents.size());
}

template <class Loss>
double mean(std::span<const DocumentScore> documents, Loss loss) {
  double sum = 0;
  for (const DocumentScore& document : documents) sum += loss(document.choices[static_cast<size_t>(document.label)]);
  return sum / static_cast<double>(documents.size());
}

double per(double sum, int64_t length) { return length > 0 ? sum / static_cast<double>(length) : runs::kNone; }

void add_losses(std::span<const DocumentScore> documents, runs::NamedNumbers& numbers) {
  const auto add = [&](const char* name, auto loss) { numbers.emplace_back(name, mean(documents, loss)); };
  add("ce_loss", [](const ChoiceScore& right) { return -per(right.likelihood, right.characters); });
  add("ce_loss_v1", [](const ChoiceScore& right) { return -per(right.likelihood, right.characters_v1); });
  add("bpb", [](const ChoiceScore& right) { return -per(right.likelihood, right.bytes) * std::numbers::log2e; });
  add("bpb_v1", [](const ChoiceScore& right) { return -per(right.likelihood, right.bytes_v1) * std::numbers::log2e; });
}

void add_accuracies(std::span<const DocumentScore> documents, runs::NamedNumbers& numbers) {
  const auto add = [&](const char* name, auto score) { numbers.emplace_back(name, accuracy(documents, score)); };
  add("acc", [](const ChoiceScore& choice) { return choice.likelihood; });
  add("len_norm", [](const ChoiceScore& choice) { return per(choice.likelihood, choice.characters); });
  add("len_norm_v1", [](const ChoiceScore& choice) { return per(choice.likelihood, choice.characters_v1); });
  add("acc_per_byte", [](const ChoiceScore& choice) { return per(choice.likelihood, choice.bytes); });
  add("acc_per_token", [](const ChoiceScore& choice) { return per(choice.likelihood, choice.tokens); });
  add("acc_uncond", [](const ChoiceScore& choice) { return choice.likelihood - choice.unconditional; });
  add("pmi_dc", [](const ChoiceScore& choice) { return choice.likelihood / choice.domain; });
}

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r\n\f\v");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n\f\v") - begin + 1);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The last number in a text, without its commas: "so 1,234.50." -> "1234.50"; "" when there is none.
std::string last_number(std::string_view text) {
  size_t end = text.size();
  while (end > 0 && !is_digit(text[end - 1])) --end;
  size_t begin = end;
  const auto inside = [&](size_t at) {  // between two digits
    return (text[at] == ',' || text[at] == '.') && at > 0 && is_digit(text[at - 1]);
  };
  while (begin > 0 && (is_digit(text[begin - 1]) || inside(begin - 1))) --begin;
  if (begin > 0 && begin < end && text[begin - 1] == '-') --begin;
  std::string number;
  for (const char c : text.substr(begin, end - begin)) {
    if (c != ',') number += c;
  }
  return number;
}

std::string_view last_boxed(std::string_view text) {
  constexpr std::string_view kOpen = "\\boxed{";
  const size_t at = text.rfind(kOpen);
  if (at == std::string_view::npos) return {};
  int depth = 1;
  for (size_t i = at + kOpen.size(); i < text.size(); ++i) {
    depth += text[i] == '{' ? 1 : text[i] == '}' ? -1 : 0;
    if (depth == 0) return text.substr(at + kOpen.size(), i - at - kOpen.size());
  }
  return {};
}

}  // namespace

ChoiceScore measured(std::string_view continuation) {
  const size_t first = std::max<size_t>(1, utf8_length(continuation));
  const auto bytes = static_cast<int64_t>(continuation.size());
  const int64_t characters = characters_of(continuation);
  ChoiceScore score;
  score.characters = characters;
  score.bytes = bytes;
  score.characters_v1 = characters - 1;
  score.bytes_v1 = bytes - static_cast<int64_t>(first);
  return score;
}

runs::NamedNumbers task_metrics(std::span<const DocumentScore> documents, bool of_choices) {
  runs::NamedNumbers numbers;
  if (documents.empty()) return numbers;
  const auto answered = std::count_if(documents.begin(), documents.end(),
                                      [](const DocumentScore& document) { return document.answered.has_value(); });
  const auto right = std::count_if(documents.begin(), documents.end(),
                                   [](const DocumentScore& document) { return document.answered.value_or(false); });
  const bool likely = std::all_of(documents.begin(), documents.end(),
                                  [](const DocumentScore& document) { return !document.choices.empty(); });
  if (likely && of_choices) add_accuracies(documents, numbers);
  if (likely) add_losses(documents, numbers);
  if (answered > 0) numbers.emplace_back(kExactMatch, static_cast<double>(right) / static_cast<double>(answered));
  std::erase_if(numbers, [](const auto& entry) { return !std::isfinite(entry.second); });
  return numbers;
}

std::string metric_of_olmo(std::string_view name) {
  for (const auto& [theirs, ours] : kOlmoNames) {
    if (theirs == name) return std::string(ours);
  }
  return {};
}

std::string olmo_metrics_text() {
  std::string text;
  for (const auto& entry : kOlmoNames) text += (text.empty() ? "" : ", ") + std::string(entry.first);
  return text;
}

bool says_answer(std::string_view said, std::span<const std::string> answers) {
  return std::any_of(answers.begin(), answers.end(), [&](const std::string& answer) {
    const std::string_view right = trimmed(answer);
    if (trimmed(said) == right) return true;
    const std::string number = last_number(right);
    std::string plain;
    for (const char c : right) {
      if (c != ',') plain += c;
    }
    if (!number.empty() && number == plain) return last_number(said) == number;
    return !right.empty() && trimmed(last_boxed(said)) == right;
  });
}

}  // namespace siamese::eval
