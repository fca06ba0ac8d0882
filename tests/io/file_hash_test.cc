#include "siamese/io/file_hash.h"

#include "tests/io/support.h"

#include "siamese/io/checksum.h"

namespace siamese::io {
namespace {

class FileHashTest : public InFolder {};

constexpr size_t kKiB = 1024;

TEST_F(FileHashTest, OfASmallFileIsThatOfItsBytes) {
  for (const size_t size : {size_t{0}, size_t{1}, kKiB, 300 * kKiB}) {
    std::string content(size, 'x');
    if (size > 0) content.back() = 'y';
    EXPECT_EQ(hash_file(put("a", content), 1024 * kKiB), (FileHash{size, checksum(content)})) << size;
  }
  const std::string brief(8 * kKiB, 'x');  // no more than its two blocks
  EXPECT_EQ(hash_file(put("a", brief), 0), (FileHash{brief.size(), checksum(brief)}));
  expect_error<DataError>([&] { hash_file(folder_ / "none", 0); }, {"none", "No such file"});
}

// 5 MiB: five blocks of 4 KiB, the first and the last bytes among them.
TEST_F(FileHashTest, OfALargeFileIsThatOfBlocks) {
  std::string content(5 * kKiB * kKiB, 'x');
  const FileHash before = hash_file(put("a", content), kKiB);
  EXPECT_EQ(before.bytes, content.size());
  const size_t last = content.size() - 4 * kKiB;
  for (const size_t at : {size_t{0}, 4 * kKiB - 1, last / 4, last / 2, 3 * last / 4 + 10, last, content.size() - 1}) {
    content[at] = 'y';
    EXPECT_NE(hash_file(put("a", content), kKiB).hash, before.hash) << at;
    content[at] = 'x';
  }
  content[4 * kKiB] = content[last - 1] = 'y';  // between blocks
  EXPECT_EQ(hash_file(put("a", content), kKiB), before);
  EXPECT_NE(hash_file(put("a", content), content.size()).hash, before.hash);  // whole
}

// 200 MiB that are nowhere on the disk: the blocks are found by arithmetic alone.
TEST_F(FileHashTest, OfAVeryLargeFileReadsLittle) {
  const auto path = put("a", "begin");
  std::filesystem::resize_file(path, 200 * kKiB * kKiB);
  const FileHash before = hash_file(path, 0);
  std::fstream(path, std::ios::binary | std::ios::in | std::ios::out)
      .seekp(static_cast<std::streamoff>(200 * kKiB * kKiB - 64 * kKiB))
      .put('y');
  EXPECT_NE(hash_file(path, 0).hash, before.hash);
}

}  // namespace
}  // namespace siamese::io
