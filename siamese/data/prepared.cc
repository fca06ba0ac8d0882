#include "siamese/data/prepared.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "siamese/base/check.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/strict_json.h"

namespace siamese::data {
namespace {

using nlohmann::json;

constexpr int kSchema = 1;

json side_json(const SideCounts& side, const char* name) {
  json shards = json::array();
  for (size_t i = 0; i < side.shards.size(); ++i) {
    shards.push_back({{"file", fmt::format("{}/{:05}.npy", name, i)},
                      {"tokens", side.shards[i].tokens},
                      {"documents", side.shards[i].documents}});
  }
  return {{"documents", side.documents}, {"tokens", side.tokens}, {"bytes", side.bytes}, {"shards", shards}};
}

SideCounts read_side(const json& value) {
  SideCounts side;
  side.documents = value.at("documents").get<uint64_t>();
  side.tokens = value.at("tokens").get<uint64_t>();
  side.bytes = value.at("bytes").get<uint64_t>();
  for (const json& shard : value.at("shards")) {
    side.shards.push_back({shard.at("tokens").get<uint64_t>(), shard.at("documents").get<uint64_t>()});
  }
  return side;
}

}  // namespace

std::string manifest_text(const Manifest& manifest) {
  json bad = json::array();
  for (const BadLine& line : manifest.bad) bad.push_back({{"file", line.file}, {"line", line.line}, {"why", line.why}});
  const json value{{"schema", kSchema},
                   {"complete", manifest.complete},
                   {"request", io::read_json(manifest.request, "the request")},
                   {"vocab", manifest.vocab},
                   {"train", side_json(manifest.sides[0], kSideNames[0])},
                   {"val", side_json(manifest.sides[1], kSideNames[1])},
                   {"empty_documents", manifest.empty},
                   {"bad_lines", {{"count", manifest.bad_count}, {"first", bad}}},
                   {"position", {{"source", manifest.source}, {"documents", manifest.done_in_source}}}};
  return io::json_text(value, 1) + "\n";
}

Manifest read_manifest(const std::filesystem::path& path) {
  const json value = io::read_json(io::read_file(path), path.string());
  try {
    if (value.at("schema").get<int>() != kSchema) throw DataError("");
    Manifest manifest;
    manifest.complete = value.at("complete").get<bool>();
    manifest.request = io::json_text(value.at("request"));
    manifest.vocab = value.at("vocab").get<uint64_t>();
    manifest.sides = {read_side(value.at("train")), read_side(value.at("val"))};
    manifest.empty = value.at("empty_documents").get<uint64_t>();
    manifest.bad_count = value.at("bad_lines").at("count").get<uint64_t>();
    for (const json& line : value.at("bad_lines").at("first")) {
      manifest.bad.push_back(
          {line.at("file").get<std::string>(), line.at("line").get<uint64_t>(), line.at("why").get<std::string>()});
    }
    manifest.source = value.at("position").at("source").get<uint64_t>();
    manifest.done_in_source = value.at("position").at("documents").get<uint64_t>();
    return manifest;
  } catch (const json::exception&) {
  } catch (const DataError&) {
  }
  throw DataError(fmt::format("{}: expected the manifest of a prepared folder, schema {}", path.string(), kSchema));
}

ShardWriter::ShardWriter(std::filesystem::path folder, const char* side, bool wide, uint64_t shard_tokens,
                         SideCounts& counts)
    : folder_(std::move(folder)), side_(side), wide_(wide), shard_tokens_(shard_tokens), counts_(counts) {
  io::make_directory(folder_ / side_);
  io::make_directory(folder_ / "documents" / side_);
  if (!counts_.shards.empty()) open_shard();
}

void ShardWriter::open_shard() {
  const std::string name = fmt::format("{:05}.npy", counts_.shards.size() - 1);
  const ShardCounts& shard = counts_.shards.back();
  tokens_ =
      std::make_unique<io::GrowingArray>(folder_ / side_ / name, wide_ ? io::DType::u32 : io::DType::u16, shard.tokens);
  documents_ =
      std::make_unique<io::GrowingArray>(folder_ / "documents" / side_ / name, io::DType::u64, shard.documents);
}

void ShardWriter::append(std::span<const text::TokenId> ids, uint64_t text_bytes) {
  const bool full = !counts_.shards.empty() && counts_.shards.back().tokens > 0 &&
                    counts_.shards.back().tokens + ids.size() > shard_tokens_;
  if (full) finish_shard();
  if (counts_.shards.empty() || full) {
    counts_.shards.emplace_back();
    open_shard();
  }
  ShardCounts& shard = counts_.shards.back();
  const uint64_t begin = shard.tokens;
  documents_->append(std::as_bytes(std::span(&begin, 1)));
  if (wide_) {
    tokens_->append(std::as_bytes(ids));
  } else {
    narrow_.assign(ids.begin(), ids.end());
    tokens_->append(std::as_bytes(std::span(narrow_)));
  }
  shard.tokens += ids.size();
  shard.documents += 1;
  counts_.tokens += ids.size();
  counts_.documents += 1;
  counts_.bytes += text_bytes;
}

void ShardWriter::sync() {
  if (!tokens_) return;
  tokens_->sync();
  documents_->sync();
}

void ShardWriter::finish_shard() {
  if (!tokens_) return;
  const uint64_t end = counts_.shards.back().tokens;
  documents_->append(std::as_bytes(std::span(&end, 1)));
  tokens_->finish();
  documents_->finish();
  tokens_.reset();
  documents_.reset();
}

void ShardWriter::finish() { finish_shard(); }

}  // namespace siamese::data
