// Files of tokens as windows of `context`, shared by text and token shards.
// A part is a range of one file; it holds (length - 1) / context windows, back to back, each reading context + 1 tokens
// (the last target of one window is the first input of the next). No window crosses a part.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "siamese/data/dataset.h"
#include "siamese/data/order.h"

namespace siamese::data {

// One file's tokens.
class TokenSource {
 public:
  virtual ~TokenSource() = default;
  virtual int64_t size() const = 0;
  // Tokens [begin, begin + out.size()), all inside the file. Safe to call from several threads.
  virtual void read(int64_t begin, std::span<int64_t> out) const = 0;
  // Where documents begin in (begin, end); nullopt: documents do not matter.
  virtual std::optional<std::vector<int64_t>> documents_between(int64_t /*begin*/, int64_t /*end*/) const {
    return std::nullopt;
  }
};

struct Part {
  std::unique_ptr<TokenSource> source;
  int64_t begin = 0;
  int64_t end = 0;
};

class Windows : public Dataset {
 public:
  // At least one part must hold a window. `title` opens describe().
  Windows(std::vector<Part> parts, Order order, int64_t context, int64_t vocab, uint64_t seed, std::string title);

  int64_t vocab() const override { return vocab_; }
  int64_t samples() const override { return first_window_.back(); }
  void sample(uint64_t position, std::span<int64_t> tokens, std::span<float> weights) const override;
  std::optional<std::vector<int64_t>> borders(uint64_t position) const override;
  std::string describe() const override;

 private:
  // The part that a sample lies in, and its first token there.
  std::pair<const Part*, int64_t> place_of(uint64_t position) const;

  std::vector<Part> parts_;
  std::vector<int64_t> first_window_;  // of each part, then the total
  Order order_;
  int64_t context_;
  int64_t vocab_;
  uint64_t seed_;
  std::string title_;
};

// How to open a file, and what its tokens are called ("bytes", "tokens").
struct FileKind {
  std::function<std::unique_ptr<TokenSource>(const std::filesystem::path&)> open;
  std::string unit;
  int64_t vocab = 0;
};

// The windows of one side: `val` if given, else the last val_fraction of each training file, is the test side.
std::unique_ptr<Dataset> open_windows(const DataConfig& config, Split split, int64_t context, uint64_t seed,
                                      const FileKind& kind);

}  // namespace siamese::data
