// Sizes and rates as people write them: "5GB", "25GB/s", "312T".
#pragma once

#include <cstdint>
#include <string>

namespace siamese::cli {

// A whole number with B, KB, MB, GB, TB (powers of 1000) or KiB, MiB, GiB, TiB (of 1024), or alone: bytes. UsageError
// naming `flag` for anything else, and for 0.
uint64_t byte_size(const std::string& flag, const std::string& text);

// Bytes a second: such a size and "/s".
double byte_rate(const std::string& flag, const std::string& text);

// Operations a second: a number, perhaps with G, T or P ("312T", "1.5e12").
double operation_rate(const std::string& flag, const std::string& text);

}  // namespace siamese::cli
