// The tokenizer of a run: found when it starts, kept in its folder and in every checkpoint as tokenizer.json.
//   data.tokenizer                          a tokenizer.json, or a folder that has one
//   else, of data.source tokens             the one that `siamese prepare` put beside the training files
//   else none                               (text is bytes, arithmetic its own characters, token files bare numbers)
#pragma once

#include <memory>
#include <string>

#include "siamese/eval/words.h"
#include "siamese/train/config.h"

namespace siamese::train {

struct LoadedModel;

struct RunTokenizer {
  std::string json;            // the file's bytes; "": none
  std::filesystem::path path;  // where it was found

  bool there() const { return !json.empty(); }
  std::string hash() const;  // 16 digits, as `siamese tokenizer info` says it; "" when there is none
};

// DataError when data.tokenizer is not there, or the training files were prepared with different ones.
RunTokenizer find_tokenizer(const data::DataConfig& data);

// That of a checkpoint or folder of weights. `hash`: what trainer.json says it is, "" when nothing: DataError when it
// is another.
RunTokenizer read_tokenizer(const std::filesystem::path& checkpoint, const std::string& hash);

// DataError when the tokenizer and the model have different vocabularies.
std::unique_ptr<eval::Words> words_of(const RunTokenizer& tokenizer, const RunConfig& config);
std::unique_ptr<eval::Words> words_of(const LoadedModel& loaded);

// UsageError when one of eval.prompts cannot be continued: no tokens, or more than model.context.
void check_prompts(const eval::Words& words, const RunConfig& config);

}  // namespace siamese::train
