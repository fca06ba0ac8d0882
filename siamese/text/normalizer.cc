#include "siamese/text/normalizer.h"

#include <nlohmann/json.hpp>

#include "siamese/io/message.h"
#include "siamese/text/characters.h"
#include "siamese/text/json_part.h"
#include "siamese/text/pattern.h"
#include "siamese/text/unicode_form.h"

namespace siamese::text {
namespace {

class FormStep : public NormalizerStep {
 public:
  explicit FormStep(Form form) : form_(form) {}
  bool change(std::string_view text, std::string& out) const override {
    if (surely_in_form(form_, text)) return false;
    out = to_form(form_, text);
    return true;
  }

 private:
  Form form_;
};

class LowercaseStep : public NormalizerStep {
 public:
  bool change(std::string_view text, std::string& out) const override {
    out.clear();
    for (const char* at = text.data(); at < text.data() + text.size();) append_lower(out, next_character(at));
    return true;
  }
};

class StripStep : public NormalizerStep {
 public:
  StripStep(bool left, bool right) : left_(left), right_(right) {}
  bool change(std::string_view text, std::string& out) const override {
    std::string_view kept = text;
    while (left_ && !kept.empty() && (kinds()[first_character(kept)] & kSpace) != 0) {
      kept.remove_prefix(character_bytes(kept[0]));
    }
    while (right_ && !kept.empty() && (kinds()[last_character(kept)] & kSpace) != 0) {
      do {
        kept.remove_suffix(1);
      } while (!kept.empty() && (static_cast<unsigned char>(kept.data()[kept.size()]) & 0xC0) == 0x80);
    }
    if (kept.size() == text.size()) return false;
    out = kept;
    return true;
  }

 private:
  bool left_;
  bool right_;
};

class PrependStep : public NormalizerStep {
 public:
  explicit PrependStep(std::string prefix) : prefix_(std::move(prefix)) {}
  bool change(std::string_view text, std::string& out) const override {
    if (text.empty()) return false;
    out = prefix_;
    out += text;
    return true;
  }

 private:
  std::string prefix_;
};

class ReplaceStep : public NormalizerStep {
 public:
  ReplaceStep(Pattern pattern, std::string content) : pattern_(std::move(pattern)), content_(std::move(content)) {}
  bool change(std::string_view text, std::string& out) const override {
    return replace_all(pattern_, content_, text, out);
  }

 private:
  Pattern pattern_;
  std::string content_;
};

void add_steps(const nlohmann::json& value, const std::string& where,
               std::vector<std::unique_ptr<NormalizerStep>>& steps) {
  JsonPart part(value, where);
  const std::string type = part.text("type");
  if (type == "Sequence") {
    part.each("normalizers", false,
              [&](const nlohmann::json& step, const std::string& name) { add_steps(step, name, steps); });
  } else if (type == "NFC") {
    steps.push_back(std::make_unique<FormStep>(Form::nfc));
  } else if (type == "NFD") {
    steps.push_back(std::make_unique<FormStep>(Form::nfd));
  } else if (type == "NFKC") {
    steps.push_back(std::make_unique<FormStep>(Form::nfkc));
  } else if (type == "NFKD") {
    steps.push_back(std::make_unique<FormStep>(Form::nfkd));
  } else if (type == "Lowercase") {
    steps.push_back(std::make_unique<LowercaseStep>());
  } else if (type == "Strip") {
    const bool left = part.flag("strip_left");
    steps.push_back(std::make_unique<StripStep>(left, part.flag("strip_right")));
  } else if (type == "Prepend") {
    steps.push_back(std::make_unique<PrependStep>(part.text("prepend")));
  } else if (type == "Replace") {
    Pattern pattern(part.need("pattern"), where + ".pattern");
    steps.push_back(std::make_unique<ReplaceStep>(std::move(pattern), part.text("content")));
  } else {
    part.fail("the normalizer " + io::in_quotes(type) +
              " is not known; known: NFC, NFD, NFKC, NFKD, Lowercase, Strip, Prepend, Replace, Sequence");
  }
  part.done();
}

}  // namespace

Normalizer::Normalizer(const nlohmann::json* value, const std::string& where) {
  if (value != nullptr) add_steps(*value, where, steps_);
}

std::string_view Normalizer::apply(std::string_view text, std::string& buffer) const {
  std::string changed;
  std::string_view now = text;
  for (const auto& step : steps_) {
    if (!step->change(now, changed)) continue;
    buffer.swap(changed);
    now = buffer;
  }
  return now;
}

}  // namespace siamese::text
