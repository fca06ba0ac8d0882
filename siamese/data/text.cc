#include "siamese/data/text.h"

#include <algorithm>

#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/base/utf8.h"
#include "siamese/data/windows.h"
#include "siamese/io/mapped_file.h"

namespace siamese::data {
namespace {

constexpr int64_t kBytes = 256;

class ByteCodec : public Codec {
 public:
  int64_t vocab() const override { return kBytes; }
  bool is_text() const override { return true; }

  std::vector<int64_t> encode(std::string_view text) const override {
    std::vector<int64_t> ids;
    ids.reserve(text.size());
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
    return ids;
  }

  std::string decode(std::span<const int64_t> ids) const override {
    std::string text;
    for (const int64_t id : ids) {
      if (id >= 0 && id < kBytes) {
        text += static_cast<char>(id);
      } else {
        text += kReplacement;
      }
    }
    return text;
  }
};

class TextFile : public TokenSource {
 public:
  explicit TextFile(const std::filesystem::path& path) : file_(path) {
    if (file_.size() == 0) throw DataError(fmt::format("{}: expected UTF-8 text, got an empty file", path.string()));
    if (const auto offset = first_invalid_utf8(file_.bytes())) {
      throw DataError(fmt::format("{}: expected UTF-8 text, got byte 0x{:02x} at offset {}", path.string(),
                                  std::to_integer<unsigned>(file_.bytes()[*offset]), *offset));
    }
  }

  int64_t size() const override { return static_cast<int64_t>(file_.size()); }

  void read(int64_t begin, std::span<int64_t> out) const override {
    const auto bytes = file_.bytes().subspan(static_cast<size_t>(begin), out.size());
    std::transform(bytes.begin(), bytes.end(), out.begin(), [](std::byte b) { return std::to_integer<int64_t>(b); });
  }

 private:
  io::MappedFile file_;
};

}  // namespace

std::unique_ptr<Codec> byte_codec() { return std::make_unique<ByteCodec>(); }

std::unique_ptr<Dataset> text_dataset(const DataConfig& config, Split split, int64_t context, uint64_t seed) {
  const FileKind kind{[](const auto& path) { return std::make_unique<TextFile>(path); }, "bytes", kBytes};
  return open_windows(config, split, context, seed, kind);
}

}  // namespace siamese::data
