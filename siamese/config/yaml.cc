#include "siamese/config/yaml.h"

#include <algorithm>
#include <sstream>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include "siamese/base/check.h"
#include "siamese/config/text.h"

namespace siamese::config {
namespace {

constexpr int kMaxDepth = 32;
constexpr const char* kGlobHint = "; a pattern of files that begins with * stands in quotes: \"*.txt\"";
constexpr size_t kMaxKeys = 4096;     // of one map: keys are looked up one by one
constexpr size_t kMaxKeyBytes = 256;  // yaml-cpp takes a longer one for something else from 1024 on

std::string place(const std::string& source, const YAML::Mark& mark) {
  if (mark.is_null() || source == "command line") return source;
  return source + ":" + std::to_string(mark.line + 1);
}

Value convert(const YAML::Node& node, const std::string& source, int depth) {
  const std::string where = place(source, node.Mark());
  if (depth > kMaxDepth) throw UsageError(where + ": nested deeper than " + std::to_string(kMaxDepth) + " levels");
  switch (node.Type()) {
    case YAML::NodeType::Undefined:
    case YAML::NodeType::Null: {
      Value value;
      value.where = where;
      return value;
    }
    case YAML::NodeType::Scalar:
      return Value::scalar(node.Scalar(), where);
    case YAML::NodeType::Sequence: {
      Value value = Value::list({}, where);
      for (const auto& item : node) value.items.push_back(convert(item, source, depth + 1));
      return value;
    }
    case YAML::NodeType::Map:
      break;
  }
  Value value = Value::map(where);
  if (node.size() > kMaxKeys) throw UsageError(where + ": a map of more than " + std::to_string(kMaxKeys) + " keys");
  for (const auto& entry : node) {
    if (!entry.first.IsScalar()) throw UsageError(place(source, entry.first.Mark()) + ": a key must be plain text");
    const std::string key = entry.first.Scalar();
    if (key.size() > kMaxKeyBytes) {
      throw UsageError(place(source, entry.first.Mark()) + ": expected a key of at most " +
                       std::to_string(kMaxKeyBytes) + " bytes, got " + std::to_string(key.size()));
    }
    if (value.find(key) != nullptr) {
      throw UsageError(place(source, entry.first.Mark()) + ": key '" + key + "' is given twice");
    }
    value.entries.emplace_back(key, convert(entry.second, source, depth + 1));
  }
  return value;
}

// Aliases are refused before a tree is built: a few lines of them can stand for billions of nodes.
class AliasFinder : public YAML::EventHandler {
 public:
  explicit AliasFinder(const std::string& source) : source_(source) {}
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw UsageError(place(source_, mark) + ": aliases (*name) are not supported: write the value again" + kGlobHint);
  }
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}

 private:
  const std::string& source_;
};

// False when there is no document. Never asks for a third: before a stray ',' yaml-cpp sees empty documents for ever.
bool check_document(const std::string& text, const std::string& source) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  AliasFinder finder(source);
  if (!parser.HandleNextDocument(finder)) return false;
  if (parser.HandleNextDocument(finder)) throw UsageError(source + ": one YAML document expected, got several");
  return true;
}

// True when plain text on the rest of a line would read back as something else (null, a list, a comment, two lines).
bool needs_quotes(const std::string& text) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") return true;
  if (text.starts_with("---") || text.starts_with("...") || text.starts_with("\xEF\xBB\xBF")) return true;
  if (std::string_view("[]{}&*!|>'\"%@`#,?:- \t").find(text.front()) != std::string_view::npos &&
      !(text.size() > 1 && text.front() == '-' && text[1] != ' ')) {
    return true;
  }
  if (text.back() == ' ' || text.back() == ':' || text.find(": ") != std::string::npos ||
      text.find(" #") != std::string::npos) {
    return true;
  }
  return std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; });
}

// The same for a key and inside brackets, where YAML has many more exceptions: what is not certainly plain is quoted.
bool needs_quotes_inside(const std::string& text) {
  return needs_quotes(text) || text.front() == '=' || !std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  std::string_view("_-./+=()~^$;*%@ ").find(c) != std::string_view::npos;
         });
}

std::string quoted(const std::string& text) {
  static const char* const kHex = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7F) {
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string scalar_text(const std::string& text, bool inside) {
  return (inside ? needs_quotes_inside(text) : needs_quotes(text)) ? quoted(text) : text;
}

void print_map(const Value& value, int indent, std::string& out) {
  for (const auto& [key, child] : value.entries) {
    out.append(static_cast<size_t>(indent), ' ');
    out += scalar_text(key, true) + ":";
    if (child.is_map() && !child.entries.empty()) {
      out += "\n";
      print_map(child, indent + 2, out);
    } else {
      out += ' ';
      out += inline_yaml(child);
      out += '\n';
    }
  }
}

}  // namespace

Value parse_yaml(const std::string& text, const std::string& source) {
  if (text.size() > kMaxYamlBytes) {
    throw UsageError(source + ": " + std::to_string(text.size()) + " bytes are no config: expected at most " +
                     std::to_string(kMaxYamlBytes));
  }
  check_text(text, source);
  try {
    if (check_document(text, source)) return convert(YAML::Load(text), source, 0);
  } catch (const YAML::Exception& error) {
    const bool of_star = error.msg == YAML::ErrorMsg::UNKNOWN_ANCHOR || error.msg == YAML::ErrorMsg::ALIAS_NOT_FOUND ||
                         error.msg == YAML::ErrorMsg::CHAR_IN_ALIAS;
    throw UsageError(place(source, error.mark) + ": not valid YAML: " + shown(error.msg) + (of_star ? kGlobHint : ""));
  }
  Value nothing;
  nothing.where = source;
  return nothing;
}

std::string to_yaml(const Value& value) {
  if (!value.is_map() || value.entries.empty()) return inline_yaml(value) + "\n";
  std::string out;
  print_map(value, 0, out);
  return out;
}

std::string inline_yaml(const Value& value) {
  switch (value.kind) {
    case Value::Kind::null:
      return "null";
    case Value::Kind::scalar:
      return scalar_text(value.text, false);
    case Value::Kind::list: {
      std::string out = "[";
      for (size_t i = 0; i < value.items.size(); ++i) {
        const Value& item = value.items[i];
        out += (i > 0 ? ", " : "");
        out += item.kind == Value::Kind::scalar ? scalar_text(item.text, true) : inline_yaml(item);
      }
      return out + "]";
    }
    case Value::Kind::map:
      break;
  }
  std::string out = "{";
  for (size_t i = 0; i < value.entries.size(); ++i) {
    const auto& [key, child] = value.entries[i];
    out += (i > 0 ? ", " : "") + scalar_text(key, true) + ": ";
    out += child.kind == Value::Kind::scalar ? scalar_text(child.text, true) : inline_yaml(child);
  }
  return out + "}";
}

}  // namespace siamese::config
