#include "siamese/io/safetensors_header.h"

#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "siamese/base/check.h"
#include "siamese/io/message.h"

namespace siamese::io {

namespace {

using nlohmann::json;
constexpr const char* kMetadataKey = "__metadata__";
constexpr size_t kHeaderOffset = 8;  // before the header; errors name offsets in the file

// Events instead of a tree: a tree would silently keep only the last of two equal keys, and could be nested at will.
class HeaderHandler : public nlohmann::json_sax<json> {
 public:
  explicit HeaderHandler(std::string_view file) : file_(file) {}

  SafetensorsHeader take() { return std::move(header_); }

  bool start_object(size_t) override {
    switch (place_) {
      case Place::start:
        place_ = Place::header;
        return true;
      case Place::header:
        place_ = name_ == kMetadataKey ? Place::metadata : Place::tensor;
        fields_.clear();
        if (place_ == Place::tensor) header_.entries.push_back({.name = name_, .shape = {}});
        return true;
      default:
        return unexpected("an object");
    }
  }

  bool key(std::string& key) override {
    switch (place_) {
      case Place::header:
        if (!names_.insert(key).second) fail(fmt::format("the key {} stands twice in the header", in_quotes(key)));
        name_ = key;
        return true;
      case Place::metadata:
        if (header_.metadata.contains(key)) fail(fmt::format("the metadata key {} stands twice", in_quotes(key)));
        field_ = key;
        return true;
      default:
        if (key != "dtype" && key != "shape" && key != "data_offsets") {
          fail(fmt::format("tensor {}: expected the keys dtype, shape and data_offsets, got {}", in_quotes(name_),
                           in_quotes(key)));
        }
        if (!fields_.insert(key).second) fail(fmt::format("tensor {}: the key {} stands twice", in_quotes(name_), key));
        field_ = key;
        return true;
    }
  }

  bool end_object() override {
    if (place_ == Place::header) {
      place_ = Place::end;
      return true;
    }
    if (place_ == Place::tensor && fields_.size() != 3) {
      fail(fmt::format("tensor {}: expected the keys dtype, shape and data_offsets, got {} of them", in_quotes(name_),
                       fields_.size()));
    }
    place_ = Place::header;
    return true;
  }

  bool start_array(size_t) override {
    if (place_ != Place::tensor || field_ == "dtype") return unexpected("an array");
    place_ = field_ == "shape" ? Place::shape : Place::offsets;
    numbers_.clear();
    return true;
  }

  bool end_array() override {
    SafetensorsEntry& entry = header_.entries.back();
    if (place_ == Place::shape) {
      entry.shape = numbers_;
    } else {
      if (numbers_.size() != 2) {
        fail(fmt::format("tensor {}: expected two data_offsets, got {}", in_quotes(name_), numbers_.size()));
      }
      entry.begin = numbers_[0];
      entry.end = numbers_[1];
    }
    place_ = Place::tensor;
    return true;
  }

  bool string(std::string& value) override {
    if (place_ == Place::metadata) {
      header_.metadata.emplace(field_, value);
      return true;
    }
    if (place_ != Place::tensor || field_ != "dtype") return unexpected(in_quotes(value));
    const auto dtype = enum_from_text<DType>(value);
    if (!dtype) {
      const auto known = enum_choices<DType>();
      fail(fmt::format("tensor {}: expected dtype one of {}, got {}", in_quotes(name_), fmt::join(known, ", "),
                       in_quotes(value)));
    }
    header_.entries.back().dtype = *dtype;
    return true;
  }

  bool number_unsigned(uint64_t value) override {
    if (place_ != Place::shape && place_ != Place::offsets) return unexpected(std::to_string(value));
    numbers_.push_back(value);
    return true;
  }

  bool null() override { return unexpected("null"); }
  bool boolean(bool value) override { return unexpected(value ? "true" : "false"); }
  bool number_integer(int64_t value) override { return unexpected(std::to_string(value)); }
  bool number_float(double, const std::string& text) override { return unexpected(text.substr(0, 80)); }
  bool binary(binary_t&) override { return unexpected("binary"); }

  bool parse_error(size_t position, const std::string&, const json::exception&) override {
    fail(fmt::format("the header is not valid JSON near byte {}", kHeaderOffset + position));
  }

 private:
  enum class Place { start, header, metadata, tensor, shape, offsets, end };

  [[noreturn]] void fail(const std::string& what) const { throw DataError(fmt::format("{}: {}", file_, what)); }

  bool unexpected(std::string_view got) const {
    switch (place_) {
      case Place::start:
      case Place::end:
        fail(fmt::format("expected the header to be a JSON object, got {}", got));
      case Place::header:
        fail(fmt::format("expected {} to be an object, got {}", in_quotes(name_), got));
      case Place::metadata:
        fail(fmt::format("expected the metadata {} to be a string, got {}", in_quotes(field_), got));
      case Place::tensor:
        fail(fmt::format("tensor {}: expected {} to be {}, got {}", in_quotes(name_), field_,
                         field_ == "dtype" ? "a string" : "an array of whole numbers", got));
      case Place::shape:
      case Place::offsets:
        break;
    }
    fail(fmt::format("tensor {}: expected whole numbers in [0, 2^64) in {}, got {}", in_quotes(name_), field_, got));
  }

  std::string_view file_;
  Place place_ = Place::start;
  std::string name_;   // of the tensor, or __metadata__
  std::string field_;  // inside it
  std::set<std::string> names_;
  std::set<std::string> fields_;
  std::vector<uint64_t> numbers_;
  SafetensorsHeader header_;
};

std::string json_string(const std::string& text) {
  try {
    return json(text).dump();
  } catch (const json::exception&) {
    throw UsageError(fmt::format("safetensors: expected UTF-8 text, got {}", in_quotes(text)));
  }
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view json_text, std::string_view file) {
  // The JSON reader takes a NUL for the end of the text and would not look at what follows.
  if (const size_t nul = json_text.find('\0'); nul != std::string_view::npos) {
    throw DataError(fmt::format("{}: the header is not valid JSON near byte {}: a NUL", file, kHeaderOffset + nul));
  }
  HeaderHandler handler(file);
  json::sax_parse(json_text.begin(), json_text.end(), &handler);
  return handler.take();
}

std::string safetensors_header_text(const SafetensorsHeader& header) {
  std::string text = "{";
  if (!header.metadata.empty()) {
    text += fmt::format("\"{}\":{{", kMetadataKey);
    for (const auto& [key, value] : header.metadata) {
      if (text.back() != '{') text += ',';
      text += json_string(key) + ':' + json_string(value);
    }
    text += '}';
  }
  for (const SafetensorsEntry& entry : header.entries) {
    if (text.back() != '{') text += ',';
    text += fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", json_string(entry.name),
                        enum_text(entry.dtype), fmt::join(entry.shape, ","), entry.begin, entry.end);
  }
  return text + '}';
}

}  // namespace siamese::io
