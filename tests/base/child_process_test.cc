#include "siamese/base/child_process.h"

#include <csignal>

#include <gtest/gtest.h>

#include "siamese/base/check.h"

namespace siamese {
namespace {

std::string all_of(ChildProcess& process) {
  std::string text;
  while (process.read(text, -1)) {
  }
  return text;
}

TEST(ChildProcess, WhatItPrintsAndHowItEnds) {
  ChildProcess well("/bin/sh", {"sh", "-c", "echo out; echo error >&2"}, ChildProcess::Through::out_and_error);
  EXPECT_EQ(all_of(well), "out\nerror\n");
  EXPECT_TRUE(well.wait().well());

  ChildProcess failing("/bin/sh", {"sh", "-c", "echo out; exit 3"}, ChildProcess::Through::out);
  EXPECT_EQ(all_of(failing), "out\n");
  const ProcessEnd end = failing.wait();
  EXPECT_FALSE(end.well());
  EXPECT_EQ(end.text(), "exit code 3");
}

TEST(ChildProcess, IsReachedBySignals) {
  ChildProcess asleep("/bin/sh", {"sh", "-c", "echo ready; exec sleep 600"}, ChildProcess::Through::out);
  std::string text;
  while (text.find("ready") == std::string::npos) ASSERT_TRUE(asleep.read(text, -1));
  EXPECT_TRUE(asleep.read(text, 0));  // nothing has come, but may
  asleep.send(SIGTERM);
  all_of(asleep);
  EXPECT_EQ(asleep.wait().text(), "signal 15");
}

TEST(ChildProcess, OneThatIsForgottenEnds) {
  const ChildProcess forgotten("/bin/sh", {"sh", "-c", "exec sleep 600"}, ChildProcess::Through::out);
}

TEST(ChildProcess, AProgramThatIsNotThereIsNamed) {
  try {
    const ChildProcess none("/no/such/program", {"program"}, ChildProcess::Through::out);
    FAIL() << "expected an error";
  } catch (const SystemError& error) {
    EXPECT_STREQ(error.what(), "/no/such/program: cannot be started: No such file or directory");
  }
}

}  // namespace
}  // namespace siamese
