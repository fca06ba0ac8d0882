// "5GB" as bytes.
#pragma once

#include <cstdint>
#include <string>

namespace siamese::cli {

// A whole number with B, KB, MB, GB, TB (powers of 1000) or KiB, MiB, GiB, TiB (of 1024), or alone: bytes. UsageError
// naming `flag` for anything else, and for 0.
uint64_t byte_size(const std::string& flag, const std::string& text);

}  // namespace siamese::cli
