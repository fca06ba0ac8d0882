#include "siamese/runs/plain_step.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "siamese/io/checksum.h"
#include "siamese/runs/line_seal.h"
#include "siamese/runs/lines.h"

namespace siamese::runs {
namespace {

struct PlainValue {
  enum Kind { number, whole, word, yes, no, nothing } kind = nothing;
  std::string_view text;
  double value = kNone;
  int64_t integer = 0;
};

// JSON as our writer and the usual others print it. Each step returns false where the line is not plain.
class PlainScanner {
 public:
  explicit PlainScanner(std::string_view text) : text_(text) {}

  bool character(char wanted) {
    spaces();
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  bool at_end() {
    spaces();
    return at_ == text_.size();
  }
  // Printable ASCII without an escape.
  bool word(std::string_view& out) {
    if (!character('"')) return false;
    const size_t from = at_;
    while (at_ < text_.size() && text_[at_] >= ' ' && text_[at_] <= '~' && text_[at_] != '"' && text_[at_] != '\\')
      ++at_;
    out = text_.substr(from, at_ - from);
    return at_ < text_.size() && text_[at_++] == '"';
  }
  bool value(PlainValue& out) {
    spaces();
    if (at_ >= text_.size()) return false;
    if (text_[at_] == '"') {
      out.kind = PlainValue::word;
      return word(out.text);
    }
    return literal("true", PlainValue::yes, out) || literal("false", PlainValue::no, out) ||
           literal("null", PlainValue::nothing, out) || number(out);
  }

 private:
  void spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool literal(std::string_view name, PlainValue::Kind kind, PlainValue& out) {
    if (!text_.substr(at_).starts_with(name)) return false;
    at_ += name.size();
    out.kind = kind;
    return true;
  }
  size_t digits(size_t from) const {
    size_t end = from;
    while (end < text_.size() && text_[end] >= '0' && text_[end] <= '9') ++end;
    return end - from;
  }
  // The grammar of JSON: no leading zero, no bare point; -0 and what does not fit are left to the other reader.
  bool number(PlainValue& out) {
    const size_t from = at_, first = from + (text_[from] == '-');
    size_t end = first + digits(first);
    if (end == first || (text_[first] == '0' && (end > first + 1 || first > from))) return false;
    bool is_whole = true;
    if (end < text_.size() && text_[end] == '.') {
      const size_t count = digits(end + 1);
      if (count == 0) return false;
      end += 1 + count;
      is_whole = false;
    }
    if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
      const size_t sign = end + 1 < text_.size() && (text_[end + 1] == '+' || text_[end + 1] == '-');
      const size_t count = digits(end + 1 + sign);
      if (count == 0) return false;
      end += 1 + sign + count;
      is_whole = false;
    }
    const char *const begin = text_.data() + from, *const stop = text_.data() + end;
    const auto real = std::from_chars(begin, stop, out.value);
    if (real.ec != std::errc() || real.ptr != stop || !std::isfinite(out.value)) return false;
    out.kind = is_whole ? PlainValue::whole : PlainValue::number;
    if (is_whole && std::from_chars(begin, stop, out.integer).ec != std::errc()) return false;
    at_ = end;
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
};

bool take_plain(const PlainValue& value, double& out) {
  const bool is_number = value.kind == PlainValue::number || value.kind == PlainValue::whole;
  if (is_number) out = value.value;
  return is_number || value.kind == PlainValue::nothing;
}

bool take_plain(const PlainValue& value, int64_t& out) {
  out = value.integer;
  return value.kind == PlainValue::whole;
}

struct PlainLine {
  StepRecord record;
  int64_t schema = 1;
  bool has_step = false, has_kind = false, has_checksum = false;
};

bool take_field(std::string_view key, const PlainValue& value, PlainLine& line) {
  StepRecord& record = line.record;
  const bool is_word = value.kind == PlainValue::word;
  if (key == "step") return line.has_step = take_plain(value, record.step) && record.step >= 1;
  if (key == "tokens") return take_plain(value, record.tokens);
  if (key == "loss") return take_plain(value, record.loss);
  if (key == "grad_norm") return take_plain(value, record.grad_norm);
  if (key == "lr") return take_plain(value, record.lr);
  if (key == "tokens_per_s") return take_plain(value, record.tokens_per_s);
  if (key == "samples_per_s") return take_plain(value, record.samples_per_s);
  if (key == "step_ms") return take_plain(value, record.step_ms);
  if (key == "skip_z") return take_plain(value, record.skip_z);
  if (key == "schema") return take_plain(value, line.schema) && (line.schema == 1 || line.schema == kSchema);
  if (key == "kind") return line.has_kind = is_word && value.text == "step";
  if (key == "checksum") return line.has_checksum = is_word;
  if (key == "skipped") {
    record.skipped = value.kind == PlainValue::yes;
    return record.skipped || value.kind == PlainValue::no;
  }
  if (key == "skip_reason") {
    record.skip_reason = value.text;
    return is_word;
  }
  if (key == "experts" || key == "sites") return false;
  double other = kNone;
  if (!take_plain(value, other)) return false;
  record.extra.emplace_back(key, other);
  return true;
}

}  // namespace

std::optional<StepRecord> read_plain_step(std::string_view line) {
  while (line.ends_with('\r') || line.ends_with(' ')) line.remove_suffix(1);
  PlainScanner scanner(line);
  PlainLine found;
  constexpr size_t kMostKeys = 32;
  std::array<std::string_view, kMostKeys> keys;
  size_t count = 0;
  if (!scanner.character('{')) return std::nullopt;
  do {
    std::string_view key;
    PlainValue value;
    if (!scanner.word(key) || !scanner.character(':') || !scanner.value(value)) return std::nullopt;
    const auto end = keys.begin() + static_cast<std::ptrdiff_t>(count);
    if (count == kMostKeys || std::find(keys.begin(), end, key) != end) return std::nullopt;  // one of a name
    keys[count++] = key;
    if (!take_field(key, value, found)) return std::nullopt;
  } while (scanner.character(','));
  if (!scanner.character('}') || !scanner.at_end() || !found.has_step) return std::nullopt;
  const bool sealed = found.schema == kSchema;
  if (found.has_kind != sealed || found.has_checksum != sealed) return std::nullopt;
  if (sealed && io::seal_error(line, kChecksumMark)) return std::nullopt;
  return std::move(found.record);
}

}  // namespace siamese::runs
