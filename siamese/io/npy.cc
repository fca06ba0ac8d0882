#include "siamese/io/npy.h"

#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/io/message.h"

namespace siamese::io {

static_assert(std::endian::native == std::endian::little, "stored numbers are read in place");

namespace {

constexpr std::string_view kArrayMagic = "\x93NUMPY";
constexpr size_t kVersionEnd = 8;  // magic, major, minor

std::optional<DType> dtype_from_descr(std::string_view descr) {
  if (descr.size() != 3) return std::nullopt;
  constexpr std::array<std::pair<std::string_view, DType>, 10> kKnown{{{"u1", DType::u8},
                                                                       {"u2", DType::u16},
                                                                       {"u4", DType::u32},
                                                                       {"u8", DType::u64},
                                                                       {"i1", DType::i8},
                                                                       {"i2", DType::i16},
                                                                       {"i4", DType::i32},
                                                                       {"i8", DType::i64},
                                                                       {"f4", DType::f32},
                                                                       {"f8", DType::f64}}};
  for (const auto& [text, dtype] : kKnown) {
    // '|' (no byte order) is how one-byte types are written.
    if (descr.substr(1) == text && (descr[0] == '<' || (descr[0] == '|' && dtype_size(dtype) == 1))) return dtype;
  }
  return std::nullopt;
}

// Reads the dict literal from left to right; `position` is the file offset that errors name.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, size_t offset, std::string_view name)
      : text_(text), offset_(offset), name_(name) {}

  void parse(NpyView& view) {
    bool has_dtype = false, has_order = false, has_shape = false;
    expect('{');
    while (!take('}')) {
      const size_t key_at = at_;
      const std::string_view key = string();
      expect(':');
      if (key == "descr" && !std::exchange(has_dtype, true)) {
        view.dtype = dtype();
      } else if (key == "fortran_order" && !std::exchange(has_order, true)) {
        order();
      } else if (key == "shape" && !std::exchange(has_shape, true)) {
        view.shape = shape();
      } else {
        fail(key_at, "'descr', 'fortran_order' and 'shape', once each", in_quotes(key));
      }
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    skip_spaces();
    if (at_ != text_.size()) fail(at_, "the end of the header", in_quotes(text_.substr(at_, 1)));
    if (!has_dtype || !has_order || !has_shape) {
      fail(0, "the keys 'descr', 'fortran_order' and 'shape'", "a header without all three");
    }
  }

 private:
  [[noreturn]] void fail(size_t at, std::string_view expected, std::string_view got) const {
    throw DataError(
        fmt::format("{}: bad NPY header at byte {}: expected {}, got {}", name_, offset_ + at, expected, got));
  }

  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }

  std::string here() const { return at_ < text_.size() ? in_quotes(text_.substr(at_, 1)) : "the end of the header"; }

  bool take(char wanted) {
    skip_spaces();
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  void expect(char wanted) {
    if (!take(wanted)) fail(at_, fmt::format("'{}'", wanted), here());
  }

  std::string_view string() {
    skip_spaces();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') fail(at_, "a quoted string", here());
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail(at_, "a closed string", "the end of the header");
    const std::string_view value = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return value;
  }

  DType dtype() {
    skip_spaces();
    const size_t start = at_;
    constexpr std::string_view kExpected = "descr '<' or '|' with u1, u2, u4, u8, i1, i2, i4, i8, f4 or f8";
    if (start < text_.size() && text_[start] == '[') fail(start, kExpected, "a structured type");
    const std::string_view descr = string();
    const auto found = dtype_from_descr(descr);
    if (!found) fail(start, kExpected, in_quotes(descr));
    return *found;
  }

  void order() {
    skip_spaces();
    constexpr std::string_view kFalse = "False";
    if (text_.substr(at_, kFalse.size()) != kFalse) {
      fail(at_, "fortran_order False", in_quotes(text_.substr(at_, kFalse.size())));
    }
    at_ += kFalse.size();
  }

  std::vector<int64_t> shape() {
    std::vector<int64_t> dimensions;
    expect('(');
    while (!take(')')) {
      skip_spaces();
      int64_t value = 0;
      const auto [stop, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
      if (error != std::errc() || value < 0) fail(at_, "a dimension in [0, 2^63)", here());
      at_ = static_cast<size_t>(stop - text_.data());
      dimensions.push_back(value);
      if (!take(',')) {
        // Python reads "(3)" as a number, not as a tuple.
        if (dimensions.size() == 1) fail(at_, "','", here());
        expect(')');
        break;
      }
    }
    return dimensions;
  }

  std::string_view text_;
  size_t offset_;
  std::string_view name_;
  size_t at_ = 0;
};

}  // namespace

bool has_npy_magic(std::span<const std::byte> bytes) {
  return bytes.size() >= kArrayMagic.size() && std::memcmp(bytes.data(), kArrayMagic.data(), kArrayMagic.size()) == 0;
}

NpyView parse_npy(std::span<const std::byte> bytes, std::string_view name) {
  if (!has_npy_magic(bytes)) throw DataError(fmt::format("{}: not an NPY file: no magic at byte 0", name));
  const auto truncated = [&](size_t needed) {
    return DataError(fmt::format("{}: truncated NPY header: expected {} bytes, got {}", name, needed, bytes.size()));
  };
  if (bytes.size() < kVersionEnd) throw truncated(kVersionEnd);
  const int major = std::to_integer<int>(bytes[6]);
  const int minor = std::to_integer<int>(bytes[7]);
  if (major < 1 || major > 3 || minor != 0) {
    throw DataError(fmt::format("{}: NPY version at byte 6: expected 1.0, 2.0 or 3.0, got {}.{}", name, major, minor));
  }
  const size_t length_bytes = major == 1 ? 2 : 4;
  const size_t header_begin = kVersionEnd + length_bytes;
  if (bytes.size() < header_begin) throw truncated(header_begin);
  uint32_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data() + kVersionEnd, length_bytes);
  if (header_bytes > bytes.size() - header_begin) throw truncated(header_begin + header_bytes);

  NpyView view;
  const std::string_view header(reinterpret_cast<const char*>(bytes.data()) + header_begin, header_bytes);
  HeaderParser(header, header_begin, name).parse(view);
  view.offset = header_begin + header_bytes;

  // A zero does not excuse the others: strides made from them would overflow all the same.
  auto nonzero = static_cast<int64_t>(dtype_size(view.dtype));
  bool empty = false;
  for (const int64_t dimension : view.shape) {
    empty = empty || dimension == 0;
    if (dimension != 0 && __builtin_mul_overflow(nonzero, dimension, &nonzero)) {
      throw DataError(fmt::format("{}: NPY shape {} at byte {} does not fit in memory", name, shape_text(view.shape),
                                  header_begin));
    }
  }
  const size_t needed = empty ? 0 : static_cast<size_t>(nonzero);
  view.data = bytes.subspan(view.offset);
  if (view.data.size() != needed) {
    throw DataError(fmt::format("{}: expected {} bytes of data from byte {} for {} {}, got {}", name, needed,
                                view.offset, enum_text(view.dtype), shape_text(view.shape), view.data.size()));
  }
  return view;
}

NpyFile::NpyFile(MappedFile file, NpyView view) : file_(std::move(file)), view_(std::move(view)) {}

NpyFile NpyFile::open(const std::filesystem::path& path) {
  MappedFile file(path);
  NpyView view = parse_npy(file.bytes(), path.string());
  return NpyFile(std::move(file), std::move(view));
}

}  // namespace siamese::io
