#include "siamese/io/token_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/base/join.h"
#include "siamese/base/nearest.h"
#include "siamese/io/megatron_index.h"
#include "siamese/io/message.h"
#include "siamese/io/npy.h"

namespace siamese::io {

namespace {

// The header of an llm.c shard: 256 int32, the first three used.
constexpr size_t kLlmcHeaderBytes = 256 * sizeof(int32_t);
struct LlmcKind {
  int32_t magic;
  int32_t version;
  DType dtype;
};
// Read as raw uint16, either magic would begin with a token above 55,000, past the vocabulary of GPT-2: raw GPT-2 files
// are never taken for these.
constexpr std::array<LlmcKind, 2> kLlmcKinds{{{20240520, 1, DType::u16}, {20240801, 7, DType::u32}}};

int32_t header_field(std::span<const std::byte> bytes, size_t index) {
  int32_t value = 0;
  std::memcpy(&value, bytes.data() + index * sizeof value, sizeof value);
  return value;
}

std::optional<LlmcKind> llmc_kind(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(int32_t)) return std::nullopt;
  const int32_t magic = header_field(bytes, 0);
  for (const LlmcKind& kind : kLlmcKinds) {
    if (kind.magic == magic) return kind;
  }
  return std::nullopt;
}

// Magic, version and count all fit: nothing else looks like this by chance.
bool is_whole_llmc(std::span<const std::byte> bytes) {
  const auto kind = llmc_kind(bytes);
  if (!kind || bytes.size() < kLlmcHeaderBytes || header_field(bytes, 1) != kind->version) return false;
  const size_t body = bytes.size() - kLlmcHeaderBytes;
  return body == static_cast<size_t>(header_field(bytes, 2)) * dtype_size(kind->dtype);
}

TokenFormat detect(const std::filesystem::path& path, std::span<const std::byte> bytes, int64_t vocab) {
  if (has_npy_magic(bytes)) return TokenFormat::npy;
  const std::string extension = path.extension().string();
  if (extension == ".bin") {
    if (has_megatron_index(path)) return TokenFormat::megatron;
    return llmc_kind(bytes) ? TokenFormat::llmc_bin : TokenFormat::nanogpt_bin;
  }
  if (extension == ".npy") return vocab <= 65536 ? TokenFormat::olmo_npy_u16 : TokenFormat::olmo_npy_u32;
  auto formats = enum_choices<TokenFormat>();
  formats.erase(formats.begin());  // auto itself
  throw DataError(
      fmt::format("{}: cannot tell the token format: expected the extension .bin or .npy, got {}{}; or name "
                  "the format: {}",
                  path.string(), in_quotes(extension), did_you_mean(extension, {".bin", ".npy"}), join(formats)));
}

struct Layout {
  DType dtype;
  size_t offset;
  size_t count;
};

Layout raw_layout(std::span<const std::byte> bytes, DType dtype, const std::string& name) {
  // The header would be read as tokens, and might pass for them.
  if (has_npy_magic(bytes) || is_whole_llmc(bytes)) {
    throw DataError(fmt::format("{}: expected raw tokens, got a file with a header: use the format {}", name,
                                has_npy_magic(bytes) ? "npy" : "llmc_bin"));
  }
  if (bytes.size() % dtype_size(dtype) != 0) {
    throw DataError(fmt::format("{}: expected a multiple of {} bytes ({} tokens), got {}", name, dtype_size(dtype),
                                enum_text(dtype), bytes.size()));
  }
  return {dtype, 0, bytes.size() / dtype_size(dtype)};
}

Layout llmc_layout(std::span<const std::byte> bytes, const std::string& name) {
  if (bytes.size() < kLlmcHeaderBytes) {
    throw DataError(
        fmt::format("{}: truncated llm.c header: expected {} bytes, got {}", name, kLlmcHeaderBytes, bytes.size()));
  }
  const auto kind = llmc_kind(bytes);
  if (!kind) {
    throw DataError(fmt::format("{}: llm.c magic at byte 0: expected {} or {}, got {}", name, kLlmcKinds[0].magic,
                                kLlmcKinds[1].magic, header_field(bytes, 0)));
  }
  if (const int32_t version = header_field(bytes, 1); version != kind->version) {
    throw DataError(fmt::format("{}: llm.c version at byte 4: expected {}, got {}", name, kind->version, version));
  }
  const int32_t count = header_field(bytes, 2);
  const size_t body = bytes.size() - kLlmcHeaderBytes;
  // A negative count becomes more than any file can hold.
  if (body != static_cast<size_t>(count) * dtype_size(kind->dtype)) {
    throw DataError(fmt::format("{}: the llm.c header at byte 8 counts {} {} tokens, but {} bytes follow it", name,
                                count, enum_text(kind->dtype), body));
  }
  return {kind->dtype, kLlmcHeaderBytes, static_cast<size_t>(count)};
}

Layout npy_layout(std::span<const std::byte> bytes, const std::string& name) {
  const NpyView view = parse_npy(bytes, name);
  if (view.shape.size() != 1 || view.dtype == DType::f32 || view.dtype == DType::f64) {
    throw DataError(fmt::format("{}: expected one dimension of integer tokens, got {} {}", name, enum_text(view.dtype),
                                shape_text(view.shape)));
  }
  return {view.dtype, view.offset, static_cast<size_t>(view.shape[0])};
}

Layout megatron_layout(std::span<const std::byte> bytes, const std::filesystem::path& path) {
  const MegatronIndex index = read_megatron_index(path);
  if (bytes.size() != index.tokens * dtype_size(index.dtype)) {
    throw DataError(fmt::format("{}: its index counts {} {} tokens, but it has {} bytes", path.string(), index.tokens,
                                enum_text(index.dtype), bytes.size()));
  }
  return {index.dtype, 0, index.tokens};
}

Layout layout_of(TokenFormat format, std::span<const std::byte> bytes, const std::string& name) {
  switch (format) {
    case TokenFormat::nanogpt_bin:
    case TokenFormat::olmo_npy_u16:
      return raw_layout(bytes, DType::u16, name);
    case TokenFormat::olmo_npy_u32:
      return raw_layout(bytes, DType::u32, name);
    case TokenFormat::llmc_bin:
      return llmc_layout(bytes, name);
    case TokenFormat::npy:
      return npy_layout(bytes, name);
    case TokenFormat::megatron:
      return megatron_layout(bytes, name);
    case TokenFormat::auto_:
      break;
  }
  SIAMESE_INVARIANT(!"auto is resolved before");
  return {};
}

// Calls `use` with a value of the stored integer type.
template <class Use>
void with_integer_type(DType dtype, Use use) {
  switch (dtype) {
    case DType::u8:
      return use(uint8_t{});
    case DType::i8:
      return use(int8_t{});
    case DType::u16:
      return use(uint16_t{});
    case DType::i16:
      return use(int16_t{});
    case DType::u32:
      return use(uint32_t{});
    case DType::i32:
      return use(int32_t{});
    case DType::u64:
      return use(uint64_t{});
    case DType::i64:
      return use(int64_t{});
    default:
      SIAMESE_INVARIANT(!"tokens are integers");
  }
}

// memcpy: the body of an NPY may start at any byte.
template <class T>
T load(const std::byte* first, size_t index) {
  T value;
  std::memcpy(&value, first + index * sizeof(T), sizeof(T));
  return value;
}

}  // namespace

TokenFile::TokenFile(MappedFile file, std::string name, int64_t vocab)
    : file_(std::move(file)), name_(std::move(name)), vocab_(static_cast<uint64_t>(vocab)) {}

TokenFile TokenFile::open(const std::filesystem::path& path, TokenFormat format, int64_t vocab) {
  SIAMESE_INVARIANT(vocab > 0);
  const std::string name = path.string();
  TokenFile tokens(MappedFile(path), name, vocab);
  const auto bytes = tokens.file_.bytes();
  if (bytes.empty()) throw DataError(fmt::format("{}: expected tokens, got an empty file", name));
  tokens.format_ = format == TokenFormat::auto_ ? detect(path, bytes, vocab) : format;
  const Layout layout = layout_of(tokens.format_, bytes, name);
  if (layout.count == 0) throw DataError(fmt::format("{}: expected tokens, got a header and none", name));
  tokens.dtype_ = layout.dtype;
  tokens.offset_ = layout.offset;
  tokens.size_ = static_cast<int64_t>(layout.count);
  // A look at both ends: another format or vocabulary is found before anything is trained.
  constexpr int64_t kLook = 16384;
  std::vector<int64_t> some(static_cast<size_t>(std::min(kLook, tokens.size_)));
  tokens.read(0, some);
  tokens.read(tokens.size_ - std::ssize(some), some);
  return tokens;
}

void TokenFile::read(int64_t begin, std::span<int64_t> out) const {
  const auto count = static_cast<int64_t>(out.size());
  SIAMESE_INVARIANT(begin >= 0 && begin <= size_ && count <= size_ - begin);
  with_integer_type(dtype_, [&](auto zero) {
    using T = decltype(zero);
    const size_t at = offset_ + static_cast<size_t>(begin) * sizeof(T);
    uint64_t largest = 0;  // of the values as they were taken: the file may change at any time; negative ones are large
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = static_cast<int64_t>(load<T>(file_.data() + at, i));
      largest = std::max(largest, static_cast<uint64_t>(out[i]));
    }
    if (largest < vocab_) return;
    const auto wrong =
        std::find_if(out.begin(), out.end(), [&](int64_t token) { return static_cast<uint64_t>(token) >= vocab_; });
    throw DataError(fmt::format("{}: token {} at byte {} is outside the vocabulary of {} (read as {}, format {})",
                                name_, static_cast<T>(*wrong),
                                at + static_cast<size_t>(wrong - out.begin()) * sizeof(T), vocab_, enum_text(dtype_),
                                enum_text(format_)));
  });
}

}  // namespace siamese::io
