#include "siamese/train/run_tokenizer.h"

#include <set>

#include "siamese/base/check.h"
#include "siamese/base/path_kind.h"
#include "siamese/data/files.h"
#include "siamese/data/mixture.h"
#include "siamese/eval/generate.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/checksum.h"
#include "siamese/io/run_dir.h"
#include "siamese/train/checkpoint.h"

namespace siamese::train {
namespace fs = std::filesystem;
namespace {

RunTokenizer read(const fs::path& path) { return {io::read_file(path), path}; }

// DIR/train/00000.npy lies in what `siamese prepare` wrote when DIR has its manifest; then it has a tokenizer, too.
RunTokenizer beside_training_files(const data::DataConfig& data) {
  std::set<fs::path> folders;
  const auto look_beside = [&](const std::vector<std::string>& train) {
    for (const fs::path& file : data::expand_files("data.train", train, data.base)) {
      folders.insert(fs::absolute(file).lexically_normal().parent_path().parent_path());
    }
  };
  if (data.mix.empty()) {
    look_beside(data.train);
  } else {
    for (const data::MixSource& source : data::mix_sources(data)) look_beside(source.data.train);
  }
  RunTokenizer found;
  for (const fs::path& folder : folders) {
    if (!is_file(folder / "manifest.json") || !is_file(folder / io::kTokenizerFile)) continue;
    RunTokenizer other = read(folder / io::kTokenizerFile);
    if (found.there() && found.json != other.json) {
      throw DataError("data.train: was prepared with different tokenizers: " + found.path.string() + " and " +
                      other.path.string());
    }
    found = std::move(other);
  }
  return found;
}

}  // namespace

std::string RunTokenizer::hash() const { return there() ? io::checksum_text(io::checksum(json)) : ""; }

RunTokenizer find_tokenizer(const data::DataConfig& data) {
  if (data.source != data::Source::tokens) return {};
  if (data.tokenizer.empty()) return beside_training_files(data);
  fs::path path = data::found_below(data.base, data.tokenizer);
  if (is_folder(path)) path /= io::kTokenizerFile;
  if (!is_file(path)) {
    throw DataError("data.tokenizer: expected a tokenizer.json or a folder that has one, got nothing at " +
                    path.string() + data::looked_for(data.base, data.tokenizer));
  }
  return read(path);
}

RunTokenizer read_tokenizer(const fs::path& checkpoint, const std::string& hash) {
  const fs::path path = checkpoint / io::kTokenizerFile;
  if (!is_there(path)) {
    if (hash.empty()) return {};
    throw DataError(path.string() + ": missing, although the run has a tokenizer");
  }
  RunTokenizer tokenizer = read(path);
  if (!hash.empty() && tokenizer.hash() != hash) {
    throw DataError(path.string() + ": hash: expected " + hash + " (" + std::string(io::kTrainerFile) + "), got " +
                    tokenizer.hash() + ": the file was damaged or changed");
  }
  return tokenizer;
}

std::unique_ptr<eval::Words> words_of(const RunTokenizer& tokenizer, const RunConfig& config) {
  if (!tokenizer.there()) return eval::words_of_source(config.data);
  return eval::words_of_tokenizer(tokenizer.json, tokenizer.path, config.model, config.data);
}

std::unique_ptr<eval::Words> words_of(const LoadedModel& loaded) {
  return words_of(read_tokenizer(loaded.checkpoint, loaded.tokenizer), loaded.config);
}

void check_prompts(const eval::Words& words, const RunConfig& config) {
  for (const std::string& prompt : config.eval.prompts) {
    try {
      eval::check_prompt(config.model, words.encode(prompt, words.special()), "eval.prompts");
    } catch (const DataError& error) {
      throw UsageError(std::string("eval.prompts: ") + error.what());
    }
  }
}

}  // namespace siamese::train
