// What a run reads: the `data` section of a config.
#pragma once

#include <string>
#include <vector>

#include "siamese/base/enum_text.h"
#include "siamese/io/token_file.h"

namespace siamese::data {

enum class Source { arithmetic, text, tokens, random };
enum class LossOn { answers, all };

struct DataConfig {
  Source source = Source::arithmetic;
  std::vector<std::string> train;
  std::vector<std::string> val;
  double val_fraction = 0.05;
  io::TokenFormat format = io::TokenFormat::auto_;
  std::string operations = "+-*";
  int digits = 4;
  double test_fraction = 0.1;
  LossOn loss = LossOn::answers;
  bool reverse = false;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("source", self.source, "where samples come from");
    visit("train", self.train, "text, tokens: files, folders or globs to train on");
    visit("val", self.val, "text, tokens: files, folders or globs held out; empty = the tail of each training file");
    visit("val_fraction", self.val_fraction, "text, tokens: share of each training file held out when val is empty");
    visit("format", self.format, "tokens: layout of the token files");
    visit("operations", self.operations, "arithmetic: which of + - * occur");
    visit("digits", self.digits, "arithmetic: most digits of an operand, 1 to 4");
    visit("test_fraction", self.test_fraction, "arithmetic: share of all problems held out");
    visit("loss", self.loss, "arithmetic: which characters are trained on");
    visit("reverse", self.reverse, "arithmetic: write the answer's digits least significant first");
  }
};

// UsageError naming the key when a value is out of range or a needed one is missing.
void check(const DataConfig& config);

}  // namespace siamese::data

namespace siamese {

template <>
struct EnumText<data::Source> {
  static constexpr EnumNames<data::Source, 4> names{{
      {data::Source::arithmetic, "arithmetic"},
      {data::Source::text, "text"},
      {data::Source::tokens, "tokens"},
      {data::Source::random, "random"},
  }};
};

template <>
struct EnumText<data::LossOn> {
  static constexpr EnumNames<data::LossOn, 2> names{{
      {data::LossOn::answers, "answers"},
      {data::LossOn::all, "all"},
  }};
};

}  // namespace siamese
