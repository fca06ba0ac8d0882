#include "siamese/io/token_file.h"

#include <array>

#include "fuzz/contract.h"
#include "fuzz/memory_file.h"

namespace siamese::fuzz {

void check_token_file(Bytes bytes) {
  if (bytes.empty()) return;
  constexpr std::array<int64_t, 4> kVocabs{1, 300, 65536, int64_t{1} << 40};
  const int64_t vocab = kVocabs[std::to_integer<size_t>(bytes[0]) % kVocabs.size()];
  const Bytes content = bytes.subspan(1);
  const MemoryFile stored(content);
  for (const auto& name : enum_choices<io::TokenFormat>()) {
    reads_or_refuses([&] {
      const io::TokenFile file = io::TokenFile::open(stored.path(), *enum_from_text<io::TokenFormat>(name), vocab);
      require(file.format() != io::TokenFormat::auto_, "the format is known after opening");
      require(file.size() >= 1, "a token file has tokens");
      require(static_cast<size_t>(file.size()) * io::dtype_size(file.dtype()) <= content.size(),
              "the tokens lie inside the file");
      std::vector<int64_t> tokens(static_cast<size_t>(file.size()));
      file.read(0, tokens);
      for (const int64_t token : tokens) require(token >= 0 && token < vocab, "a token lies inside the vocabulary");
    });
  }
}

}  // namespace siamese::fuzz
