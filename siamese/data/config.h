// What a run reads: the `data` section of a config.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "siamese/base/enum_text.h"
#include "siamese/data/augment_config.h"
#include "siamese/io/token_file.h"

namespace siamese::data {

enum class Source { arithmetic, text, tokens, random, shapes, idx, cifar, folder, latents };
enum class LossOn { answers, all };
enum class Normalize { symmetric, imagenet };
enum class Pack { stream, documents };

// Keys that only some sources use.
config::Use of(std::initializer_list<Source> sources);
config::Use of_files();
// Random data are images or tokens as the model sees them.
config::Use of_images();

struct DataConfig {
  Source source = Source::arithmetic;
  std::vector<std::string> train;
  std::vector<std::string> val;
  std::vector<std::string> mix;
  double val_fraction = 0.05;
  io::TokenFormat format = io::TokenFormat::auto_;
  Pack pack = Pack::stream;
  std::string tokenizer;
  std::string operations = "+-*";
  int digits = 4;
  double test_fraction = 0.1;
  LossOn loss = LossOn::answers;
  bool reverse = false;
  int64_t limit = 0;
  Normalize normalize = Normalize::symmetric;
  AugmentConfig augment;
  // No key: where relative paths are looked for before the folder that the process works in; "": nowhere else.
  std::string base = {};

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("source", self.source, "where samples come from");
    visit("train", self.train,
          {"files, folders or globs to train on; of idx, cifar and folder one folder", of_files()});
    visit("val", self.val,
          {"what is held out, written like train; empty = the tail of train, or what idx and cifar call test",
           of_files()});
    visit(
        "mix", self.mix,
        {"named sources and their shares, [web=3, books=1]; entries of train and val then begin with a name, web=PATH",
         of({Source::text, Source::tokens})});
    visit("val_fraction", self.val_fraction,
          {"share of each training file (folder: of each class) held out",
           of({Source::text, Source::tokens, Source::folder, Source::latents}), config::without("data.val")});
    visit("format", self.format, {"layout of the token files", of({Source::tokens})});
    visit("pack", self.pack,
          {"stream: a token sees all before it in its window; documents: of its own document only",
           of({Source::tokens})});
    visit("tokenizer", self.tokenizer,
          {"tokenizer.json (or a folder with one) of the token files; empty = the one that `siamese prepare` put there",
           of({Source::tokens})});
    visit("operations", self.operations, {"which of + - * occur", of({Source::arithmetic})});
    visit("digits", self.digits, {"most digits of an operand, 1 to 4", of({Source::arithmetic})});
    visit("test_fraction", self.test_fraction,
          {"share of all problems or outlines held out", of({Source::arithmetic, Source::shapes})});
    visit("loss", self.loss, {"which characters are trained on", of({Source::arithmetic})});
    visit("reverse", self.reverse, {"write the answer's digits least significant first", of({Source::arithmetic})});
    visit("limit", self.limit, {"train on the first so many only; 0 = all", of_images()});
    visit("normalize", self.normalize, {"what is subtracted from and divides pixels of 0 to 1", of_pixels()});
    visit("augment", self.augment, {"", of_images()});
  }
};

// UsageError naming the key when a value is out of range or a needed one is missing.
void check(const DataConfig& config);

// What a config tells of its samples before anything is read; 0 = it does not, the model has to.
struct DataSizes {
  bool images = false;
  int64_t vocab = 0;
  int64_t classes = 0;
  int64_t channels = 0;
};

DataSizes sizes_of(const DataConfig& config);

// DataError when the classes are told by files and these are not there; sizes_of then says 0 of them.
void check_told_classes(const DataConfig& config);

// Names of the classes, by label; empty = they are numbers.
std::vector<std::string> class_names(const DataConfig& config);

}  // namespace siamese::data

namespace siamese {

template <>
struct EnumText<data::Source> {
  static constexpr EnumNames<data::Source, 9> names{{
      {data::Source::arithmetic, "arithmetic"},
      {data::Source::text, "text"},
      {data::Source::tokens, "tokens"},
      {data::Source::random, "random"},
      {data::Source::shapes, "shapes"},
      {data::Source::idx, "idx"},
      {data::Source::cifar, "cifar"},
      {data::Source::folder, "folder"},
      {data::Source::latents, "latents"},
  }};
};

template <>
struct EnumText<data::LossOn> {
  static constexpr EnumNames<data::LossOn, 2> names{{
      {data::LossOn::answers, "answers"},
      {data::LossOn::all, "all"},
  }};
};

template <>
struct EnumText<data::Pack> {
  static constexpr EnumNames<data::Pack, 2> names{{
      {data::Pack::stream, "stream"},
      {data::Pack::documents, "documents"},
  }};
};

template <>
struct EnumText<data::Normalize> {
  static constexpr EnumNames<data::Normalize, 2> names{{
      {data::Normalize::symmetric, "symmetric"},
      {data::Normalize::imagenet, "imagenet"},
  }};
};

}  // namespace siamese
