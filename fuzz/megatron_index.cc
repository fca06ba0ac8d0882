#include "siamese/io/megatron_index.h"

#include "fuzz/contract.h"

namespace siamese::fuzz {

void check_megatron_index(Bytes bytes) {
  reads_or_refuses([&] {
    const io::MegatronIndex index = io::parse_megatron_index(bytes, "tokens.idx");
    constexpr size_t kPerSequence = 12;
    require(index.sequences <= bytes.size() / kPerSequence, "the sequences lie inside the file");
    require(index.tokens <= index.sequences * uint64_t{INT32_MAX}, "a sequence has as many tokens as a length can say");
    require(io::dtype_size(index.dtype) <= 8, "tokens are whole numbers");
  });
}

}  // namespace siamese::fuzz
