#include <array>

#include "fuzz/contract.h"
#include "fuzz/memory_file.h"

#include "siamese/io/byte_stream.h"

namespace siamese::fuzz {

// Plain, gzip or Zstandard, as the first bytes say.
void check_compressed(Bytes bytes) {
  const MemoryFile stored(bytes);
  const std::string_view text = text_of(bytes);
  const bool plain = !text.starts_with("\x1F\x8B") && !text.starts_with("\x28\xB5\x2F\xFD");
  reads_or_refuses([&] {
    const auto stream = io::open_bytes(stored.path());
    std::array<char, 4099> block;                // no multiple of what they keep inside
    constexpr size_t kEnough = size_t{1} << 24;  // a kilobyte can stand for gigabytes
    size_t total = 0;
    while (total < kEnough) {
      const size_t got = stream->read(block);
      require(got <= block.size(), "no more is read than there is room");
      require(stream->consumed() <= bytes.size(), "no more is consumed than there is");
      if (plain)
        require(text.substr(total, got) == std::string_view(block.data(), got), "plain bytes stay as they are");
      if (got == 0) break;
      total += got;
    }
    if (plain && bytes.size() < kEnough) require(total == bytes.size(), "all is read");
  });
}

}  // namespace siamese::fuzz
