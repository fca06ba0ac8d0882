#include "siamese/io/json_lines.h"

#include <cerrno>
#include <fstream>
#include <limits>
#include <optional>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "siamese/base/check.h"
#include "siamese/base/path_kind.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/message.h"

namespace siamese::io {

namespace {

using nlohmann::json;

// Walks one line without building a tree, so that any nesting costs nothing, and notes the value of one top-level key.
class LineHandler : public nlohmann::json_sax<json> {
 public:
  explicit LineHandler(std::string_view wanted) : wanted_(wanted) {}

  bool has_key() const { return has_key_; }
  std::optional<int64_t> value() const { return value_; }

  bool start_object(size_t) override {
    ++depth_;
    return true;
  }
  bool end_object() override { return end_nested(); }
  bool start_array(size_t) override { return depth_++ > 0; }  // the line itself must be an object
  bool end_array() override { return end_nested(); }
  bool key(std::string& name) override {
    if (depth_ == 1) {
      at_wanted_ = name == wanted_;
      has_key_ = has_key_ || at_wanted_;
    }
    return true;
  }
  bool number_integer(int64_t number) override {
    if (depth_ == 1 && at_wanted_) value_ = number;
    return depth_ > 0;
  }
  bool number_unsigned(uint64_t number) override {
    // A step past int64 is no step, and certainly past any last one.
    constexpr auto kLargest = std::numeric_limits<int64_t>::max();
    return number_integer(number > uint64_t{kLargest} ? kLargest : static_cast<int64_t>(number));
  }
  bool null() override { return depth_ > 0; }
  bool boolean(bool) override { return depth_ > 0; }
  bool number_float(double, const std::string&) override { return depth_ > 0; }
  bool string(std::string&) override { return depth_ > 0; }
  bool binary(binary_t&) override { return false; }
  bool parse_error(size_t, const std::string&, const json::exception&) override { return false; }

 private:
  bool end_nested() {
    --depth_;
    return true;
  }

  std::string_view wanted_;
  size_t depth_ = 0;
  bool at_wanted_ = false;
  bool has_key_ = false;
  std::optional<int64_t> value_;
};

bool parse_object(std::string_view line, LineHandler& handler) {
  // The JSON reader takes a NUL (what a power cut leaves) for the end of the text.
  return line.find('\0') == std::string_view::npos && json::sax_parse(line.begin(), line.end(), &handler);
}

bool is_object(std::string_view line) {
  LineHandler handler("");
  return parse_object(line, handler);
}

// Calls use(line, ended) for each line; `ended` is false for a last line without '\n'.
template <class Use>
void for_each_line(std::string_view text, Use use) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const bool ended = end != std::string_view::npos;
    use(text.substr(0, end), ended);
    text.remove_prefix(ended ? end + 1 : text.size());
  }
}

// A last line without '\n' is cut when torn; when whole (edited by hand), it gets its '\n'.
void mend_last_line(const std::filesystem::path& path, int descriptor) {
  std::ifstream end(path, std::ios::binary | std::ios::ate);
  if (end.tellg() > 0 && end.seekg(-1, std::ios::end).get() == '\n') return;  // the usual: no need to read it all
  const std::string text = read_file(path);
  if (text.empty() || text.back() == '\n') return;
  const size_t last_line = text.rfind('\n') + 1;  // npos + 1 is 0
  const int error = is_object(std::string_view(text).substr(last_line))
                        ? write_all(descriptor, "\n", 1)
                        : (::ftruncate(descriptor, static_cast<off_t>(last_line)) == 0 ? 0 : errno);
  if (error != 0) throw_system_error("write", path, error);
}

}  // namespace

JsonLinesWriter JsonLinesWriter::open(const std::filesystem::path& path, Mode mode) {
  std::error_code error;
  if (mode == Mode::replace && std::filesystem::is_regular_file(path, error)) write_file_atomic(path, "");
  JsonLinesWriter writer(path);
  if (mode == Mode::append) {
    writer.file_.keep_other_names_as_they_are();
    if (std::filesystem::is_regular_file(path, error)) mend_last_line(path, writer.file_.descriptor());
  }
  return writer;
}

void JsonLinesWriter::write(std::string_view one_line_json) {
  SIAMESE_INVARIANT(one_line_json.find('\n') == std::string_view::npos);
  file_.write(std::string(one_line_json) + '\n');
}

void truncate_json_lines(const std::filesystem::path& path, const std::string& key, int64_t last) {
  if (!is_there(path)) return;
  const std::string text = read_file(path);
  std::string kept;
  for_each_line(text, [&](std::string_view line, bool) {
    LineHandler handler(key);
    if (!parse_object(line, handler)) return;
    if (handler.has_key() && !(handler.value() && *handler.value() <= last)) return;
    kept.append(line).push_back('\n');
  });
  if (kept != text) write_file_atomic(path, kept);
}

std::vector<std::string> read_json_lines(const std::filesystem::path& path) {
  const std::string text = read_file(path);
  std::vector<std::string> lines;
  int64_t number = 0;
  for_each_line(text, [&](std::string_view line, bool ended) {
    ++number;
    if (is_object(line)) {
      lines.emplace_back(line);
    } else if (ended) {
      throw DataError(
          fmt::format("{}: line {}: expected a JSON object, got {}", path.string(), number, in_quotes(line)));
    }
  });
  return lines;
}

}  // namespace siamese::io
