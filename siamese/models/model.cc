#include "siamese/models/model.h"

#include <charconv>
#include <string_view>

namespace siamese::models {

int64_t Model::block_of(const nn::Parameter& parameter) const {
  constexpr std::string_view kBlocks = "blocks.";
  std::string_view name = parameter.name;
  if (!name.starts_with(kBlocks)) return kNoBlock;
  name.remove_prefix(kBlocks.size());
  int64_t block = kNoBlock;
  const auto read = std::from_chars(name.data(), name.data() + name.size(), block);
  return read.ec == std::errc() ? block : kNoBlock;
}

std::vector<int64_t> Model::blocks_of_parameters() const {
  std::vector<int64_t> blocks;
  for (const nn::Parameter& parameter : parameters_.list()) blocks.push_back(block_of(parameter));
  return blocks;
}

}  // namespace siamese::models
