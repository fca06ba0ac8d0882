// What `siamese prepare` writes, and its state while it does: a folder with
//   train/00000.npy ...            tokens, one dimension, uint16 or (vocabulary past 65536) uint32
//   val/00000.npy ...              the same, of documents held out
//   documents/train/00000.npy ...  uint64: where each document of the shard of that name begins, then the shard's
//   length tokenizer.json                 a copy of the tokenizer manifest.json                  this file's Manifest
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "siamese/io/file_hash.h"
#include "siamese/io/growing_array.h"
#include "siamese/text/vocabulary.h"

namespace siamese::data {

struct ShardCounts {
  uint64_t tokens = 0;
  uint64_t documents = 0;
};

struct SideCounts {
  uint64_t documents = 0;
  uint64_t tokens = 0;
  uint64_t bytes = 0;               // of text, for bits per byte
  std::vector<ShardCounts> shards;  // the last may still grow
};

struct BadLine {
  std::string file;
  uint64_t line = 0;
  std::string why;
};

// A file that was read.
struct PreparedSource {
  std::string path;
  io::FileHash content;
};

struct Manifest {
  // What decides the result. Equal in two manifests: one may go on with what the other began.
  std::string request;  // tokenizer, eos, sources, how documents are told: as JSON
  uint64_t vocab = 0;
  std::array<SideCounts, 2> sides;  // train, val
  uint64_t empty = 0;               // documents without text
  uint64_t bad_count = 0;
  std::vector<BadLine> bad;  // the first hundred
  // Where to go on: so many documents of source `source` are done. Past the last source: complete.
  uint64_t source = 0;
  uint64_t done_in_source = 0;
  bool complete = false;
};

inline constexpr std::array<const char*, 2> kSideNames{"train", "val"};
inline constexpr size_t kMostBadLines = 100;

std::string manifest_text(const Manifest& manifest);
// DataError naming the file.
Manifest read_manifest(const std::filesystem::path& path);

// The shards of one side.
class ShardWriter {
 public:
  // Goes on where `counts` (which it keeps up to date) says.
  ShardWriter(std::filesystem::path folder, const char* side, bool wide, uint64_t shard_tokens, SideCounts& counts);

  // One document with its eos. A shard ends with a document.
  void append(std::span<const text::TokenId> ids, uint64_t text_bytes);
  void sync();
  void finish();

 private:
  void open_shard();
  void finish_shard();

  std::filesystem::path folder_;
  const char* side_;
  bool wide_;
  uint64_t shard_tokens_;
  SideCounts& counts_;
  std::unique_ptr<io::GrowingArray> tokens_;
  std::unique_ptr<io::GrowingArray> documents_;
  std::vector<uint16_t> narrow_;
};

}  // namespace siamese::data
