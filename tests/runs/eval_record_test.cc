#include "siamese/runs/eval_record.h"

#include <cmath>

#include "tests/runs/support.h"
#include <nlohmann/json.hpp>

#include "siamese/runs/lines.h"

namespace siamese::runs {
namespace {

TEST(EvalRecord, ReadsWhatItWritesOfEachFamily) {
  EvalRecord text;
  text.step = 500;
  text.loss = 1.5;
  text.perplexity = 4.5;
  text.baseline = 2.25;
  text.targets = 4096;
  text.accuracy = Accuracy{5, 10, {{"+", 2, 5, 10}}};
  text.averaged = true;
  text.prompts = {{"Once", " upon\n a \"time\""}, {"\u00e9", ""}};
  EvalRecord images;
  images.step = 2;
  images.of_images = true;
  images.targets = 512;
  images.classification = ClassificationRecord{{400, 512}, {500, 512}, {"a", "b"}, {{1, 2}, {3, 4}}};
  EvalRecord drawn;
  drawn.step = 3;
  drawn.loss = 0.25;
  drawn.of_images = true;
  drawn.diffusion = {{"mse", 0.25}, {"vlb", 0.125}};
  drawn.samples = SamplesRecord{64, 50, "ddim", 1.5, 12, 0.5, "runs/judge", "samples/step3.png"};
  for (const EvalRecord& record : {text, images, drawn}) {
    const std::string line = to_line(record);
    EXPECT_EQ(to_line(read_eval(line, "here")), line);
    EXPECT_EQ(nlohmann::json::parse(line)["kind"], "eval");
  }
  const EvalRecord read = read_eval(to_line(text), "here");
  EXPECT_EQ(read.targets, 4096);
  EXPECT_EQ(read.baseline, 2.25);
  EXPECT_FALSE(read.of_images);
  EXPECT_TRUE(read.averaged);
  ASSERT_EQ(read.prompts.size(), 2u);
  EXPECT_EQ(read.prompts[0].text, " upon\n a \"time\"");
  EXPECT_EQ(read.accuracy->groups[0].operation, "+");
  EXPECT_TRUE(read.measures().empty());
  const NamedNumbers shares{{"top1", 400.0 / 512}, {"top5", 500.0 / 512}};
  EXPECT_EQ(read_eval(to_line(images), "here").measures(), shares);
  const NamedNumbers of_samples{{"mse", 0.25}, {"vlb", 0.125}, {"feature_distance", 12}, {"class_agreement", 0.5}};
  EXPECT_EQ(read_eval(to_line(drawn), "here").measures(), of_samples);
}

TEST(EvalRecord, LossesOfTextAreMeasures) {
  EvalRecord one;
  one.bits_per_byte = 2.125;
  EXPECT_EQ(read_eval(to_line(one), "here").measures(), (NamedNumbers{{"bits_per_byte", 2.125}}));
  EvalRecord several;
  several.sets = {
      {.name = "web", .loss = 1.25, .bits_per_byte = 0.5}, {.name = "b", .loss = kNone}, {.name = "c", .loss = 3}};
  several.diffusion = {{"mse", 0.5}};
  EXPECT_EQ(several.measures(), (NamedNumbers{{"web loss", 1.25}, {"c loss", 3}, {"mse", 0.5}}));
  EXPECT_TRUE(is_text_loss("bits_per_byte") && is_text_loss("web loss"));
  EXPECT_FALSE(is_text_loss(" loss") || is_text_loss("loss") || is_text_loss("web ce_loss") || is_text_loss("mse"));
}

TEST(EvalRecord, AFieldOfAnotherTypeIsNamedOrNoted) {
  const auto said = [](const std::string& line) { return error_of([&] { read_eval(line, "e: line 1"); }); };
  expect_said(said(R"({"loss":1})"), "e: line 1: step: expected a whole number");
  expect_said(said(R"({"step":1,"loss":"x"})"), "e: line 1: loss: expected a number or null");
  expect_said(said(R"({"step":1,"prompts":[{"prompt":"a"}]})"), "e: line 1: prompts: text: expected");
  expect_said(said(R"({"step":1,"accuracy":{"correct":-1,"count":2}})"), "e: line 1: accuracy: correct: expected");
  const auto of = [](const std::string& field) { return R"({"step":1,"classification":{)" + field + "}}"; };
  expect_said(said(of(R"("top1":{"correct":6,"count":5})")),
              "e: line 1: classification: top1: correct: expected at most 5");
  expect_said(said(of(R"("confusion":[[1,2],[3]])")), "confusion: expected 2 rows of 2 counts each");
  expect_said(said(of(R"("confusion":[[1,-2],[3,4]])")), "confusion: expected counts");
  expect_said(said(of(R"("confusion":[[1,0.5],[3,4]])")), "confusion: expected counts");
  Notes notes;
  const EvalRecord read = read_eval(of(R"("top1":{"correct":4,"count":5},"confusion":[7,8])"), "e: line 1", &notes);
  EXPECT_EQ(read.classification->top1.share(), 0.8);
  EXPECT_TRUE(read.classification->confusion.empty());
  EXPECT_TRUE(std::isnan(read.classification->top5.share()));
  ASSERT_EQ(notes.size(), 1u);
  expect_said(notes[0], "e: line 1: classification: confusion");
}

TEST(EvalRecord, ReadsEveryLineOfVersion010) {
  for (const char* const family : {"lm", "moe", "vit", "dit"}) {
    size_t lines = 0;
    for_each_line(fixture(std::string(family) + "/eval.jsonl"),
                  [&](std::string_view line, const std::string& where, Notes* notes) {
                    EXPECT_TRUE(std::isfinite(read_eval(line, where, notes).loss));
                    ++lines;
                  });
    EXPECT_GE(lines, 1u) << family;
  }
}

}  // namespace
}  // namespace siamese::runs
