#include "siamese/io/byte_stream.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "siamese/base/check.h"
#include "siamese/io/file_handle.h"
#include "siamese/io/message.h"

namespace siamese::io {
namespace {

constexpr size_t kBlock = size_t{256} << 10;

class PlainStream : public ByteStream {
 public:
  PlainStream(FileHandle file, int descriptor, std::string name)
      : file_(std::move(file)), descriptor_(descriptor), name_(std::move(name)) {}

  size_t read(std::span<char> into) override {
    while (true) {
      const ssize_t got = ::read(descriptor_, into.data(), into.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw_read_error(name_, errno);
      consumed_ += static_cast<uint64_t>(got);
      return static_cast<size_t>(got);
    }
  }
  uint64_t consumed() const override { return consumed_; }
  const std::string& name() const { return name_; }

 private:
  FileHandle file_;
  int descriptor_;
  std::string name_;
  uint64_t consumed_ = 0;
};

// What both kinds of compression need: a block of the file, refilled when it is used up.
class Source {
 public:
  explicit Source(PlainStream file) : file_(std::move(file)), block_(kBlock) {}

  // False at the end of the file.
  bool refill() {
    used_ = 0;
    filled_ = file_.read(block_);
    return filled_ > 0;
  }
  bool empty() const { return used_ == filled_; }
  const char* data() const { return block_.data() + used_; }
  size_t size() const { return filled_ - used_; }
  void use(size_t bytes) { used_ += bytes; }
  uint64_t consumed() const { return file_.consumed() - size(); }
  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(fmt::format("{}: damaged compressed data before byte {}: {}", file_.name(), consumed(), what));
  }

 private:
  PlainStream file_;
  std::vector<char> block_;
  size_t used_ = 0;
  size_t filled_ = 0;
};

class GzipStream : public ByteStream {
 public:
  explicit GzipStream(PlainStream file) : source_(std::move(file)) {
    constexpr int kGzip = 15 + 16;
    if (inflateInit2(&state_, kGzip) != Z_OK) throw std::bad_alloc();
  }
  ~GzipStream() override { inflateEnd(&state_); }

  size_t read(std::span<char> into) override {
    state_.next_out = reinterpret_cast<Bytef*>(into.data());
    state_.avail_out = static_cast<uInt>(std::min(into.size(), size_t{1} << 30));
    const uInt room = state_.avail_out;
    while (state_.avail_out == room) {
      if (source_.empty() && !source_.refill()) {
        if (inside_) source_.fail("it ends too early");
        return 0;
      }
      if (!inside_) {  // another member
        inflateReset(&state_);
        inside_ = true;
      }
      state_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(source_.data()));
      state_.avail_in = static_cast<uInt>(source_.size());
      const int result = inflate(&state_, Z_NO_FLUSH);
      source_.use(source_.size() - state_.avail_in);
      if (result == Z_STREAM_END) {
        inside_ = false;
      } else if (result != Z_OK && result != Z_BUF_ERROR) {
        source_.fail(state_.msg != nullptr ? state_.msg : "not gzip");
      }
    }
    return room - state_.avail_out;
  }
  uint64_t consumed() const override { return source_.consumed(); }

 private:
  Source source_;
  z_stream state_{};
  bool inside_ = true;
};

class ZstdStream : public ByteStream {
 public:
  explicit ZstdStream(PlainStream file) : source_(std::move(file)), state_(ZSTD_createDCtx()) {
    if (state_ == nullptr) throw std::bad_alloc();
  }
  ~ZstdStream() override { ZSTD_freeDCtx(state_); }

  size_t read(std::span<char> into) override {
    ZSTD_outBuffer out{into.data(), into.size(), 0};
    while (out.pos == 0) {
      if (source_.empty() && !source_.refill()) {
        if (wanted_ != 0) source_.fail("it ends too early");
        return 0;
      }
      ZSTD_inBuffer in{source_.data(), source_.size(), 0};
      wanted_ = ZSTD_decompressStream(state_, &out, &in);
      source_.use(in.pos);
      if (ZSTD_isError(wanted_) != 0) source_.fail(ZSTD_getErrorName(wanted_));
    }
    return out.pos;
  }
  uint64_t consumed() const override { return source_.consumed(); }

 private:
  Source source_;
  ZSTD_DCtx* state_;
  size_t wanted_ = 1;  // 0: a frame is complete
};

}  // namespace

std::unique_ptr<ByteStream> open_bytes(const std::filesystem::path& path) {
  size_t bytes = 0;
  FileHandle file = open_regular_file(path, bytes);
  unsigned char magic[4] = {};
  const int descriptor = file.get();
  if (::pread(descriptor, magic, sizeof magic, 0) < 0) throw_read_error(path, errno);
  PlainStream plain(std::move(file), descriptor, path.string());
  if (magic[0] == 0x1F && magic[1] == 0x8B) return std::make_unique<GzipStream>(std::move(plain));
  constexpr unsigned char kZstd[4] = {0x28, 0xB5, 0x2F, 0xFD};
  if (std::memcmp(magic, kZstd, sizeof kZstd) == 0) return std::make_unique<ZstdStream>(std::move(plain));
  return std::make_unique<PlainStream>(std::move(plain));
}

std::unique_ptr<ByteStream> standard_input() {
  return std::make_unique<PlainStream>(FileHandle(), STDIN_FILENO, "standard input");
}

}  // namespace siamese::io
