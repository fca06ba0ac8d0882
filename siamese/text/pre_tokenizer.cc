#include "siamese/text/pre_tokenizer.h"

#include <optional>

#include <nlohmann/json.hpp>

#include "siamese/base/join.h"
#include "siamese/io/message.h"
#include "siamese/text/byte_level.h"
#include "siamese/text/characters.h"
#include "siamese/text/json_part.h"
#include "siamese/text/pattern.h"
#include "siamese/text/scan.h"
#include "siamese/text/split_behavior.h"

namespace siamese::text {
namespace {

void hand_on(Piece whole, size_t begin, size_t end, PieceSink& sink) {
  if (begin < end) sink.take({whole.text.substr(begin, end - begin), whole.first && begin == 0});
}

void hand_on(Piece whole, SplitBehavior behavior, std::vector<Span>& spans, PieceSink& sink) {
  join_spans(behavior, spans);
  for (const Span& span : spans) hand_on(whole, span.begin, span.end, sink);
}

void scan_pieces(Scan scan, Piece whole, PieceSink& sink) {
  const char* const begin = whole.text.data();
  const char* const end = begin + whole.text.size();
  for (const char* at = begin; at < end;) {
    const char* const stop = next_piece(scan, at, end);
    sink.take({{at, static_cast<size_t>(stop - at)}, whole.first && at == begin});
    at = stop;
  }
}

class SplitStep : public PreTokenizerStep {
 public:
  SplitStep(Pattern pattern, SplitBehavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {
    // These patterns cover every text: no part lies between the matches.
    const bool all_kept = behavior == SplitBehavior::isolated || (behavior == SplitBehavior::removed && invert);
    if (pattern_.is_regex() && all_kept) scan_ = scan_of(pattern_.source());
  }

  void split(Piece piece, PieceSink& sink) const override {
    if (scan_) return scan_pieces(*scan_, piece, sink);
    if (behavior_ == SplitBehavior::isolated) return isolate(piece, sink);
    std::vector<Span> spans;
    size_t before = 0;
    pattern_.each(piece.text, [&](size_t begin, size_t end) {
      if (before != begin) spans.push_back({before, begin, invert_});
      spans.push_back({begin, end, !invert_});
      before = end;
    });
    if (before != piece.text.size()) spans.push_back({before, piece.text.size(), invert_});
    hand_on(piece, behavior_, spans, sink);
  }

 private:
  void isolate(Piece piece, PieceSink& sink) const {
    size_t before = 0;
    pattern_.each(piece.text, [&](size_t begin, size_t end) {
      hand_on(piece, before, begin, sink);
      hand_on(piece, begin, end, sink);
      before = end;
    });
    hand_on(piece, before, piece.text.size(), sink);
  }

  Pattern pattern_;
  SplitBehavior behavior_;
  bool invert_;
  std::optional<Scan> scan_;
};

// Characters of a kind are the matches, each for itself.
class KindStep : public PreTokenizerStep {
 public:
  KindStep(uint16_t kind, SplitBehavior behavior) : kind_(kind), behavior_(behavior) {}

  void split(Piece piece, PieceSink& sink) const override {
    std::vector<Span> spans;
    const char* const begin = piece.text.data();
    const char* const end = begin + piece.text.size();
    const auto place = [&](const char* at) { return static_cast<size_t>(at - begin); };
    size_t before = 0;
    for (const char* at = begin; at < end;) {
      const char* const here = at;
      if ((kinds()[next_character(at)] & kind_) == 0) continue;
      if (before < place(here)) spans.push_back({before, place(here), false});
      spans.push_back({place(here), place(at), true});
      before = place(at);
    }
    if (before < piece.text.size()) spans.push_back({before, piece.text.size(), false});
    hand_on(piece, behavior_, spans, sink);
  }

 private:
  uint16_t kind_;
  SplitBehavior behavior_;
};

// Runs of word characters, and runs of what is neither that nor space.
class WhitespaceStep : public PreTokenizerStep {
 public:
  void split(Piece piece, PieceSink& sink) const override {
    const char* const begin = piece.text.data();
    const char* const end = begin + piece.text.size();
    const char* run = begin;
    int before = kNone;
    for (const char* at = begin; at < end;) {
      const char* const here = at;
      const uint16_t kind = kinds()[next_character(at)];
      const int now = (kind & kWord) != 0 ? kInWord : (kind & kSpace) != 0 ? kNone : kOutside;
      if (now == before) continue;
      if (before != kNone) hand_on(piece, static_cast<size_t>(run - begin), static_cast<size_t>(here - begin), sink);
      run = here;
      before = now;
    }
    if (before != kNone) hand_on(piece, static_cast<size_t>(run - begin), piece.text.size(), sink);
  }

 private:
  enum { kNone, kInWord, kOutside };
};

class MetaspaceStep : public PreTokenizerStep {
 public:
  enum class Prepend { always, first, never };
  MetaspaceStep(std::string mark, Prepend prepend, bool split)
      : mark_(std::move(mark)), prepend_(prepend), split_(split) {}

  void split(Piece piece, PieceSink& sink) const override {
    std::string text;
    text.reserve(piece.text.size() + piece.text.size() / 2);
    const bool wanted = prepend_ == Prepend::always || (prepend_ == Prepend::first && piece.first);
    if (wanted && piece.text[0] != ' ' && !piece.text.starts_with(mark_)) text = mark_;
    for (const char c : piece.text) {
      if (c == ' ') {
        text += mark_;
      } else {
        text += c;
      }
    }
    const Piece whole{text, piece.first};
    if (!split_) return sink.take(whole);
    size_t begin = 0;
    while (begin < text.size()) {
      const size_t next =
          std::min(text.find(mark_, begin + (begin == 0 && !text.starts_with(mark_) ? 0 : mark_.size())), text.size());
      hand_on(whole, begin, next, sink);
      begin = next;
    }
  }

 private:
  std::string mark_;
  Prepend prepend_;
  bool split_;
};

class ByteLevelStep : public PreTokenizerStep {
 public:
  ByteLevelStep(bool prefix, bool regex) : prefix_(prefix), regex_(regex) {}
  void map(bool value) { map_ = value; }

  void split(Piece piece, PieceSink& sink) const override {
    std::string text;
    if (prefix_ && piece.text[0] != ' ') {
      text = ' ';
      text += piece.text;
      piece.text = text;
    }
    if (!map_) return pieces(piece, sink);
    Mapper mapper(sink);
    pieces(piece, mapper);
  }

 private:
  struct Mapper : PieceSink {
    explicit Mapper(PieceSink& next) : sink(next) {}
    void take(Piece piece) override {
      const std::string characters = token_of_bytes(piece.text);
      sink.take({characters, piece.first});
    }
    PieceSink& sink;
  };

  void pieces(Piece piece, PieceSink& sink) const {
    if (regex_) {
      scan_pieces(Scan::gpt2, piece, sink);
    } else {
      sink.take(piece);
    }
  }

  bool prefix_;
  bool regex_;
  bool map_ = true;
};

SplitBehavior behavior_of(JsonPart& part, const std::string& otherwise) {
  const std::string name = part.text("behavior", otherwise);
  const auto behavior = enum_from_text<SplitBehavior>(name);
  if (!behavior)
    part.fail("behavior: expected " + join(enum_choices<SplitBehavior>()) + ", got " + io::in_quotes(name));
  return *behavior;
}

std::unique_ptr<PreTokenizerStep> metaspace(JsonPart& part) {
  using Prepend = MetaspaceStep::Prepend;
  const std::string mark = part.character("replacement", "\xE2\x96\x81");
  part.ignore({"str_rep"});
  // Older files say add_prefix_space instead of prepend_scheme.
  const bool prefix = part.flag("add_prefix_space", true);
  const std::string scheme = part.text("prepend_scheme", prefix ? "always" : "never");
  if (scheme != "always" && scheme != "first" && scheme != "never") {
    part.fail("prepend_scheme: expected always, first or never, got " + io::in_quotes(scheme));
  }
  if (!prefix && scheme != "never") part.fail("add_prefix_space is false, but prepend_scheme is " + scheme);
  const Prepend prepend = scheme == "always" ? Prepend::always : scheme == "first" ? Prepend::first : Prepend::never;
  return std::make_unique<MetaspaceStep>(mark, prepend, part.flag("split", true));
}

void add_steps(const nlohmann::json& value, const std::string& where,
               std::vector<std::unique_ptr<PreTokenizerStep>>& steps) {
  JsonPart part(value, where);
  const std::string type = part.text("type");
  if (type == "Sequence") {
    part.each("pretokenizers", false,
              [&](const nlohmann::json& step, const std::string& name) { add_steps(step, name, steps); });
  } else if (type == "ByteLevel") {
    const bool prefix = part.flag("add_prefix_space");
    part.ignore({"trim_offsets"});
    steps.push_back(std::make_unique<ByteLevelStep>(prefix, part.flag("use_regex", true)));
  } else if (type == "Split") {
    Pattern pattern(part.need("pattern"), where + ".pattern");
    const SplitBehavior behavior = behavior_of(part, "");
    steps.push_back(std::make_unique<SplitStep>(std::move(pattern), behavior, part.flag("invert", false)));
  } else if (type == "Digits") {
    const bool individual = part.flag("individual_digits");
    steps.push_back(
        std::make_unique<KindStep>(kDigit, individual ? SplitBehavior::isolated : SplitBehavior::contiguous));
  } else if (type == "Punctuation") {
    steps.push_back(std::make_unique<KindStep>(kPunctuation, behavior_of(part, "Isolated")));
  } else if (type == "Whitespace") {
    steps.push_back(std::make_unique<WhitespaceStep>());
  } else if (type == "WhitespaceSplit") {
    steps.push_back(std::make_unique<KindStep>(kSpace, SplitBehavior::removed));
  } else if (type == "Metaspace") {
    steps.push_back(metaspace(part));
  } else {
    part.fail("the pre-tokenizer " + io::in_quotes(type) +
              " is not known; known: ByteLevel, Split, Digits, Punctuation, Whitespace, WhitespaceSplit, Metaspace, "
              "Sequence");
  }
  part.done();
}

// Hands a word of one step to the next.
struct NextStep : PieceSink {
  NextStep(const PreTokenizerStep& next_step, PieceSink& after) : step(next_step), sink(after) {}
  void take(Piece piece) override { step.split(piece, sink); }
  const PreTokenizerStep& step;
  PieceSink& sink;
};

}  // namespace

PreTokenizer::PreTokenizer(const nlohmann::json* value, const std::string& where) {
  if (value != nullptr) add_steps(*value, where, steps_);
  if (steps_.empty()) return;
  if (auto* const last = dynamic_cast<ByteLevelStep*>(steps_.back().get())) {
    last->map(false);
    gives_bytes_ = true;
  }
}

void PreTokenizer::give_characters() {
  if (!gives_bytes_) return;
  dynamic_cast<ByteLevelStep&>(*steps_.back()).map(true);
  gives_bytes_ = false;
}

void PreTokenizer::split_from(size_t step, Piece piece, PieceSink& sink) const {
  if (step == steps_.size()) return sink.take(piece);
  if (step + 1 == steps_.size()) return steps_[step]->split(piece, sink);
  // Two steps, which is what most files have, without a detour.
  if (step + 2 == steps_.size()) {
    NextStep next(*steps_[step + 1], sink);
    return steps_[step]->split(piece, next);
  }
  struct Rest : PieceSink {
    Rest(const PreTokenizer& all, size_t from, PieceSink& after) : pre_tokenizer(all), first(from), sink_(after) {}
    void take(Piece one) override { pre_tokenizer.split_from(first, one, sink_); }
    const PreTokenizer& pre_tokenizer;
    size_t first;
    PieceSink& sink_;
  };
  Rest rest(*this, step + 1, sink);
  steps_[step]->split(piece, rest);
}

}  // namespace siamese::text
