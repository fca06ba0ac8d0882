#include "siamese/io/llama2c.h"

#include <array>
#include <cstdint>
#include <cstring>

#include <fmt/format.h>

#include "siamese/base/check.h"

namespace siamese::io {
namespace {

constexpr size_t kModelHeaderBytes = 7 * sizeof(int32_t);
constexpr uint32_t kLaterMagic = 0x616b3432;  // "ak42": the formats with a version

struct Header {
  int64_t dim = 0, hidden = 0, layers = 0, heads = 0, kv_heads = 0, vocab = 0, context = 0;
  bool tied = true;

  int64_t head_dim() const { return dim / heads; }
};

// int32 on disk: every product below stays far below 2^63.
Header read_header(std::span<const std::byte> bytes, std::string_view name) {
  const auto fail = [&](const std::string& why) { throw DataError(fmt::format("{}: {}", name, why)); };
  if (bytes.size() < kModelHeaderBytes) {
    fail(fmt::format("expected a header of {} bytes (a model of llama2.c), got {} bytes", kModelHeaderBytes,
                     bytes.size()));
  }
  std::array<int32_t, 7> numbers{};
  std::memcpy(numbers.data(), bytes.data(), kModelHeaderBytes);
  if (static_cast<uint32_t>(numbers[0]) == kLaterMagic) {
    fail("expected a file of llama2.c without a version, got one with a version (export it with --version 0)");
  }
  Header header{numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5], numbers[6], numbers[5] > 0};
  if (!header.tied) header.vocab = -header.vocab;
  const auto require = [&](const char* what, int64_t value, int64_t most) {
    if (value < 1 || value > most) {
      fail(fmt::format("not a model of llama2.c: {}: expected a number from 1 to {}, got {}", what, most, value));
    }
  };
  require("dim", header.dim, 1 << 20);
  require("hidden_dim", header.hidden, 1 << 20);
  require("n_layers", header.layers, 4096);
  require("n_heads", header.heads, header.dim);
  require("n_kv_heads", header.kv_heads, header.heads);
  require("vocab_size", header.vocab, 1 << 28);
  require("seq_len", header.context, 1 << 24);
  if (header.dim % header.heads != 0 || header.head_dim() % 2 != 0 || header.heads % header.kv_heads != 0) {
    fail(
        fmt::format("not a model of llama2.c: dim {}, n_heads {}, n_kv_heads {} do not divide into heads of an even "
                    "width",
                    header.dim, header.heads, header.kv_heads));
  }
  return header;
}

// Walks along the file.
class Walk {
 public:
  Walk(std::span<const std::byte> bytes, std::string_view name) : bytes_(bytes), name_(name) {}

  void skip(int64_t floats) { at_ += static_cast<uint64_t>(floats) * sizeof(float); }
  void take(std::string name, std::vector<int64_t> shape) {
    TensorView view{std::move(name), DType::f32, std::move(shape)};
    view.bytes = sizeof(float);
    for (const int64_t size : view.shape) view.bytes *= static_cast<size_t>(size);
    view.file = std::string(name_);
    if (at_ + view.bytes <= bytes_.size()) view.data = bytes_.data() + at_;
    at_ += view.bytes;
    tensors_.push_back(std::move(view));
  }
  uint64_t at() const { return at_; }
  std::vector<TensorView> tensors() { return std::move(tensors_); }

 private:
  std::span<const std::byte> bytes_;
  std::string_view name_;
  uint64_t at_ = kModelHeaderBytes;
  std::vector<TensorView> tensors_;
};

}  // namespace

SafetensorsContent parse_llama2c(std::span<const std::byte> bytes, std::string_view name) {
  const Header header = read_header(bytes, name);
  const int64_t dim = header.dim, kv_dim = header.kv_heads * header.head_dim();
  Walk walk(bytes, name);
  const auto each = [&](const char* part, const std::vector<int64_t>& shape) {
    for (int64_t layer = 0; layer < header.layers; ++layer) walk.take(fmt::format("layers.{}.{}", layer, part), shape);
  };
  walk.take("tok_embeddings.weight", {header.vocab, dim});
  each("attention_norm.weight", {dim});
  each("attention.wq.weight", {dim, dim});
  each("attention.wk.weight", {kv_dim, dim});
  each("attention.wv.weight", {kv_dim, dim});
  each("attention.wo.weight", {dim, dim});
  each("ffn_norm.weight", {dim});
  each("feed_forward.w1.weight", {header.hidden, dim});
  each("feed_forward.w2.weight", {dim, header.hidden});
  each("feed_forward.w3.weight", {header.hidden, dim});
  walk.take("norm.weight", {dim});
  walk.skip(header.context * header.head_dim());  // cos and sin
  if (!header.tied) walk.take("output.weight", {header.vocab, dim});
  if (walk.at() != bytes.size()) {
    throw DataError(fmt::format("{}: expected {} bytes for a model of llama2.c with this header, got {}", name,
                                walk.at(), bytes.size()));
  }
  return {walk.tensors(),
          {{"format", std::string(kLlama2cFormat)},
           {"heads", std::to_string(header.heads)},
           {"kv_heads", std::to_string(header.kv_heads)},
           {"context", std::to_string(header.context)}}};
}

}  // namespace siamese::io
