#include "siamese/io/result_file.h"

#include "tests/io/support.h"

#include "siamese/base/check.h"
#include "siamese/io/atomic_file.h"

namespace siamese::io {
namespace {

namespace fs = std::filesystem;

class ResultFile : public InFolder {
 protected:
  std::string refusal(const fs::path& path, const IsResult& is_result) const {
    try {
      check_result_file(path, "picture (PNG)", is_result);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  }

  const fs::path root_ = folder_;
};

TEST_F(ResultFile, OnlyOneOfItsKindIsReplaced) {
  const fs::path file = root_ / "a";
  const IsResult by_text = holds_text("mark", 8);
  EXPECT_EQ(refusal(file, by_text), "");  // nothing there yet
  write_file_atomic(file, "1234mark");
  EXPECT_EQ(refusal(file, by_text), "");
  write_file_atomic(file, "12345mark");
  EXPECT_EQ(refusal(file, by_text), file.string() + ": exists already and is no picture (PNG); choose another file");
  EXPECT_EQ(refusal(file, holds_text("mark")), "");
  write_file_atomic(file, "");
  EXPECT_NE(refusal(file, by_text), "");
  EXPECT_EQ(refusal(root_, by_text), root_.string() + ": expected a file to write, got a folder");
  fs::create_symlink(root_ / "nowhere", root_ / "link");
  EXPECT_NE(refusal(root_ / "link", by_text), "");
}

TEST_F(ResultFile, TensorsAreKnownByTheirNames) {
  const fs::path file = root_ / "a";
  const std::string header = R"({"loss":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  std::string length(8, '\0');
  length[0] = static_cast<char>(header.size());
  write_file_atomic(file, length + header + std::string(4, '\0'));
  EXPECT_EQ(refusal(file, holds_tensor("loss")), "");
  EXPECT_NE(refusal(file, holds_tensor("samples")), "");  // weights, say
  write_file_atomic(file, "a thesis");
  EXPECT_NE(refusal(file, holds_tensor("loss")), "");
}

TEST_F(ResultFile, OnePlaceByTwoNames) {
  fs::create_symlink(root_, root_ / "round");
  EXPECT_TRUE(same_place(root_ / "a", root_ / "round" / "." / "a"));
  EXPECT_TRUE(same_place(root_, root_ / ""));
  EXPECT_FALSE(same_place(root_ / "a", root_ / "b"));
  EXPECT_TRUE(same_place("is_not_there", "./is_not_there"));
}

}  // namespace
}  // namespace siamese::io
