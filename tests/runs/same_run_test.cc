#include "siamese/runs/same_run.h"

#include "tests/runs/support.h"

#include "siamese/runs/run_info.h"

namespace siamese::runs {
namespace {

namespace fs = std::filesystem;

class SameRunTest : public FolderTest {
 protected:
  void put(const std::string& id) const {
    RunInfo info;
    info.id = id;
    info.scheme = info.label = "pre";
    fs::create_directories(folder_ / "run/step6");
    write_run_file(folder_ / "run", info);
  }
};

TEST_F(SameRunTest, TheSameAsLongAsItsIdStandsThere) {
  put("0123456789abcdef");
  const SameRun same(folder_ / "run/step6/");
  same.check();
  fs::remove_all(folder_ / "run/step6");  // a checkpoint may go, the run is the same
  same.check();
}

TEST_F(SameRunTest, AnotherRunOrNoneIsNamedAndWhatIsEmptyGoes) {
  put("0123456789abcdef");
  const SameRun same(folder_ / "run/step6");
  fs::remove_all(folder_ / "run");
  put("fedcba9876543210");
  fs::create_directories(folder_ / "run/analysis/step6");
  expect_said(error_of([&] { same.check(folder_ / "run/analysis/step6"); }),
              "run: another run was put there meanwhile");
  EXPECT_FALSE(fs::exists(folder_ / "run/analysis"));
  EXPECT_TRUE(fs::exists(folder_ / "run/step6"));
  fs::remove_all(folder_ / "run");
  EXPECT_NE(error_of([&] { same.check(); }), "");
}

TEST_F(SameRunTest, WeightsAloneAreOfNoRun) {
  fs::create_directories(folder_ / "weights");
  SameRun(folder_ / "weights").check();
}

}  // namespace
}  // namespace siamese::runs
