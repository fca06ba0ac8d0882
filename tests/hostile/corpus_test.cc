// Every file in corpus/<format>/ was a problem once: found by a fuzzer, made small, mended.
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/hostile/support.h"

#include "siamese/base/memory_use.h"

namespace siamese::hostile {
namespace {

TEST(Corpus, EveryFileIsReadOrRefused) {
  size_t files = 0;
  for (const auto& [format, check] : fuzz::properties()) {
    const auto folder = std::filesystem::path(SIAMESE_HOSTILE_CORPUS) / format;
    if (!std::filesystem::is_directory(folder)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      std::ifstream stream(entry.path(), std::ios::binary);
      expect_holds(check, {std::istreambuf_iterator<char>(stream), {}}, entry.path().string());
      ++files;
    }
  }
  EXPECT_GE(files, 5U);
}

TEST(Corpus, EveryFolderHasAProperty) {
  for (const auto& entry : std::filesystem::directory_iterator(SIAMESE_HOSTILE_CORPUS)) {
    const auto& all = fuzz::properties();
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const auto& property) {
      return property.format == entry.path().filename().string();
    })) << entry.path();
  }
}

// Nothing at all, nothing but one byte, and the same byte many times.
TEST(Corpus, PlainBytesAreReadOrRefused) {
  for (const auto& [format, check] : fuzz::properties()) {
    for (const size_t length : {0, 1, 2, 7, 8, 9, 64, 1025, 4099}) {
      for (const char byte : {'\0', '\xFF', '{', '[', '(', ',', ':', '\n', '\t', ' ', 'a', '0', '\x04', '\x80'}) {
        expect_holds(check, std::string(length, byte), std::string(format));
      }
    }
  }
}

TEST(Corpus, NoneOfThemNeedsMuchMemory) { EXPECT_LT(memory_use().peak_mb, 1500); }

}  // namespace
}  // namespace siamese::hostile
