#include "fuzz/contract.h"
#include "fuzz/properties.h"

#include "siamese/io/tensor_files.h"

namespace siamese::fuzz {

void check_shard_index(Bytes bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  reads_or_refuses([&] {
    for (const auto& [tensor, shard] : io::parse_shard_index(text, "index.json")) {
      require(shard.ends_with(".safetensors"), "a shard is a safetensors file");
      require(shard.find('/') == std::string::npos, "a shard lies beside its index");
    }
  });
}

}  // namespace siamese::fuzz
