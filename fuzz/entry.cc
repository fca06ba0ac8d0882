// libFuzzer's entry point, compiled once per format: SIAMESE_FUZZ_CHECK is the property to feed.
#include <cstdint>

#include "fuzz/properties.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  siamese::fuzz::SIAMESE_FUZZ_CHECK(std::as_bytes(std::span(data, size)));
  return 0;
}
