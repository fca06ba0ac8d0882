// XXH3-64: finds a flipped bit, a lost or a swapped block, at the speed of memory. It is no protection against somebody
// who wants to deceive. Written as 16 hexadecimal digits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace siamese::io {

uint64_t checksum(std::span<const std::byte> bytes);
uint64_t checksum(std::string_view text);

// The same of bytes that come in pieces.
class Checksum {
 public:
  Checksum();
  ~Checksum();
  Checksum(const Checksum&) = delete;
  Checksum& operator=(const Checksum&) = delete;

  void add(std::span<const std::byte> bytes);
  uint64_t value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Whoever hashes and then uses bytes does both block by block: the second finds them in the cache.
inline constexpr size_t kChecksumBlock = size_t{256} << 10;

std::string checksum_text(uint64_t value);
std::optional<uint64_t> checksum_from_text(std::string_view text);  // exactly 16 digits, lower case

// Text that carries its own checksum: 16 digits after the first `mark`, computed with zeros in their place.
// seal: fills them in; the mark and room for them must be there.
void seal(std::string& text, std::string_view mark);
// nullopt when the seal holds; else what is wrong with it ("expected the checksum ..., got ...").
std::optional<std::string> seal_error(std::string_view text, std::string_view mark);

}  // namespace siamese::io
