// The fast reader of plain lines says what the other one says, or nothing.
#include "siamese/runs/plain_step.h"

#include <bit>
#include <cstdint>

#include "tests/runs/support.h"

namespace siamese::runs {
namespace {

void expect_same_number(double a, double b, const std::string& line) {
  EXPECT_TRUE(std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b) || (a != a && b != b)) << line << a << " " << b;
}

void expect_same(const StepRecord& a, const StepRecord& b, const std::string& line) {
  EXPECT_EQ(a.step, b.step) << line;
  EXPECT_EQ(a.tokens, b.tokens) << line;
  EXPECT_EQ(a.skipped, b.skipped) << line;
  EXPECT_EQ(a.skip_reason, b.skip_reason) << line;
  for (double StepRecord::*const member :
       {&StepRecord::loss, &StepRecord::grad_norm, &StepRecord::lr, &StepRecord::tokens_per_s,
        &StepRecord::samples_per_s, &StepRecord::step_ms, &StepRecord::skip_z}) {
    expect_same_number(a.*member, b.*member, line);
  }
  ASSERT_EQ(a.extra.size(), b.extra.size()) << line;
  for (size_t at = 0; at < a.extra.size(); ++at) {
    EXPECT_EQ(a.extra[at].first, b.extra[at].first) << line;
    expect_same_number(a.extra[at].second, b.extra[at].second, line);
  }
  EXPECT_TRUE(b.sites.empty() && b.experts.empty()) << line;
}

// True when the fast reader took the line.
bool compare(const std::string& line) {
  const auto plain = read_plain_step(line);
  if (!plain) return false;
  try {
    expect_same(*plain, read_any_step(line, "here", nullptr), line);
  } catch (const DataError& error) {
    ADD_FAILURE() << "taken, but wrong: " << line << "\n" << error.what();
  }
  return true;
}

StepRecord sample() {
  StepRecord record;
  record.step = 12345;
  record.tokens = 98765432100;
  record.loss = 2.302585092994046;
  record.grad_norm = kNone;
  record.lr = 1e-7;
  record.tokens_per_s = 31000;
  record.samples_per_s = 0.25;
  record.step_ms = 12.5;
  record.skipped = true;
  record.skip_reason = "grad_norm";
  record.skip_z = 7.5;
  record.extra = {{"mse", 0.1}, {"vlb", kNone}};
  return record;
}

TEST(PlainStep, TakesWhatIsWrittenHere) {
  EXPECT_TRUE(compare(to_line(sample())));
  EXPECT_TRUE(compare(to_line(sample()) + " \r"));
  StepRecord deep = sample();
  deep.sites.resize(1);
  EXPECT_FALSE(compare(to_line(deep)));  // nested: for the other reader
  EXPECT_EQ(read_step(to_line(deep), "here").sites.size(), 1u);
}

TEST(PlainStep, TakesOlderLinesAndThoseOfOtherPrinters) {
  EXPECT_TRUE(compare(R"({"step":1})"));
  EXPECT_TRUE(compare(R"({"schema": 1, "step": 7, "loss": 1.5E+2, "lr": 0, "skipped": false, "z_loss": -3})"));
}

TEST(PlainStep, WhatIsWrongOrUnusualIsLeftToTheOther) {
  for (const char* const line : {"",
                                 "{}",
                                 "{",
                                 R"({"step":0})",
                                 R"({"step":1.0})",
                                 R"({"step":1,})",
                                 R"({"step":1}x)",
                                 R"({"step":1,"step":2})",
                                 R"({"step":1,"loss":01})",
                                 R"({"step":1,"loss":1.})",
                                 R"({"step":1,"loss":.5})",
                                 R"({"step":1,"loss":+1})",
                                 R"({"step":1,"loss":1e})",
                                 R"({"step":1,"loss":-})",
                                 R"({"step":1,"loss":-0})",
                                 R"({"step":1,"loss":1e999})",
                                 R"({"step":1,"loss":NaN})",
                                 R"({"step":1,"loss":"1"})",
                                 R"({"step":1,"loss":true})",
                                 R"({"step":1,"tokens":null})",
                                 R"({"step":99999999999999999999})",
                                 R"({"step":1,"name":"x"})",
                                 R"({"step":1,"sites":[]})",
                                 R"([1])",
                                 R"({"schema":3,"step":1})",
                                 R"({"schema":2,"step":1})",
                                 R"({"schema":2,"kind":"step","step":1})",
                                 R"({"kind":"step","step":1})",
                                 R"({"step":1,"skip_reason":"a\u0062"})",
                                 R"({"step":1,"lo\u0073s":2})"}) {
    EXPECT_FALSE(read_plain_step(line)) << line;
  }
}

TEST(PlainStep, NoChangedByteIsTakenForSomethingElse) {
  const std::string sealed = to_line(sample());
  const std::string older = R"({"schema":1,"step":12,"tokens":640,"loss":-2.5e-3,"skipped":false,"mse":0.125})";
  for (const std::string& line : {sealed, older}) {
    for (size_t at = 0; at < line.size(); ++at) {
      for (const char byte : {'0', '9', '-', '.', 'e', '"', '}', ',', ':', ' ', '\\', '\0', '\x80', 'l'}) {
        std::string changed = line;
        changed[at] = byte;
        compare(changed);
      }
      compare(line.substr(0, at));
      compare(line.substr(0, at) + line.substr(at + 1));
    }
  }
}

}  // namespace
}  // namespace siamese::runs
