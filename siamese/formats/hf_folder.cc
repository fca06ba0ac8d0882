#include "siamese/formats/hf_folder.h"

#include <algorithm>
#include <array>

#include "siamese/base/path_kind.h"
#include "siamese/formats/hf_code.h"
#include "siamese/formats/hf_config.h"
#include "siamese/io/atomic_file.h"

namespace siamese::formats {
namespace {

// How text becomes tokens, in the names of transformers. (generation_config.json names the first and the last token.)
constexpr std::string_view kTokenizerFile = "tokenizer.json";
constexpr std::string_view kTokenizerConfigFile = "tokenizer_config.json";
constexpr std::array<std::string_view, 9> kTokenizerFiles = {
    kTokenizerFile, kTokenizerConfigFile, "special_tokens_map.json", "added_tokens.json",     "vocab.json",
    "merges.txt",   "tokenizer.model",    "chat_template.jinja",     "generation_config.json"};

}  // namespace

std::vector<HfFile> hf_files(Layout layout, const models::ModelConfig& config, std::string_view torch_dtype) {
  std::vector<HfFile> files = {{std::string(kHfConfigFile), hf_config_text(layout, config, torch_dtype)}};
  if (layout == Layout::hf) {
    files.push_back({std::string(kConfigurationFile), std::string(configuration_text())});
    files.push_back({std::string(kModelingFile), std::string(modeling_text())});
  }
  return files;
}

std::vector<HfFile> tokenizer_files(Layout to, const std::filesystem::path& source) {
  std::vector<HfFile> files;
  for (const std::string_view name : kTokenizerFiles) {
    if (is_file(source / name)) files.push_back({std::string(name), io::read_file(source / name)});
  }
  // Without it transformers would look for the tokenizer of a model type that it knows.
  if (is_hugging_face(to) && is_file(source / kTokenizerFile) && !is_file(source / kTokenizerConfigFile)) {
    files.push_back({std::string(kTokenizerConfigFile), "{\n  \"tokenizer_class\": \"PreTrainedTokenizerFast\"\n}\n"});
  }
  return files;
}

bool is_hf_file(std::string_view name) {
  return name == kHfConfigFile || name == kConfigurationFile || name == kModelingFile ||
         std::ranges::find(kTokenizerFiles, name) != kTokenizerFiles.end();
}

}  // namespace siamese::formats
