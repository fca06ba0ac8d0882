#include "siamese/io/checksum.h"

#include <charconv>

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "siamese/base/check.h"

namespace siamese::io {

namespace {

constexpr size_t kDigits = 16;

// Where the digits of a seal stand; nullopt when they cannot.
std::optional<size_t> seal_place(std::string_view text, std::string_view mark) {
  const size_t found = text.find(mark);
  if (found == std::string_view::npos || text.size() - found - mark.size() < kDigits) return std::nullopt;
  return found + mark.size();
}

uint64_t sealed_checksum(std::string_view text, size_t place) {
  Checksum sum;
  const auto add = [&](std::string_view part) { sum.add(std::as_bytes(std::span(part))); };
  add(text.substr(0, place));
  add(std::string(kDigits, '0'));
  add(text.substr(place + kDigits));
  return sum.value();
}

}  // namespace

uint64_t checksum(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

uint64_t checksum(std::string_view text) { return checksum(std::as_bytes(std::span(text))); }

struct Checksum::State {
  XXH3_state_t sum;
};

Checksum::Checksum() : state_(std::make_unique<State>()) { XXH3_64bits_reset(&state_->sum); }

Checksum::~Checksum() = default;

void Checksum::add(std::span<const std::byte> bytes) { XXH3_64bits_update(&state_->sum, bytes.data(), bytes.size()); }

uint64_t Checksum::value() const { return XXH3_64bits_digest(&state_->sum); }

std::string checksum_text(uint64_t value) { return fmt::format("{:016x}", value); }

std::optional<uint64_t> checksum_from_text(std::string_view text) {
  if (text.size() != kDigits || text.find_first_not_of("0123456789abcdef") != std::string_view::npos) {
    return std::nullopt;
  }
  uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return value;
}

void seal(std::string& text, std::string_view mark) {
  const auto place = seal_place(text, mark);
  SIAMESE_INVARIANT(place.has_value());
  text.replace(*place, kDigits, checksum_text(sealed_checksum(text, *place)));
}

std::optional<std::string> seal_error(std::string_view text, std::string_view mark) {
  const auto place = seal_place(text, mark);
  if (!place) return "its checksum is missing";
  const std::string got = checksum_text(sealed_checksum(text, *place));
  const std::string_view expected = text.substr(*place, kDigits);
  if (expected == got) return std::nullopt;
  const bool is_one = checksum_from_text(expected).has_value();
  return fmt::format("expected the checksum {}, got {}", is_one ? expected : "of 16 digits", got);
}

}  // namespace siamese::io
