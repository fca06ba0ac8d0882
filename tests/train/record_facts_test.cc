// What a line of an older version does not say, and needs no training to be known.
#include "siamese/train/record_facts.h"

#include "tests/train/tiny_run.h"

#include "siamese/train/sweep_record.h"
#include "siamese/train/trainer.h"

namespace siamese::train {
namespace record_facts_test {

runs::RecordLine evaluated_line(const RunConfig& config) {
  runs::RecordLine line{.sweep = "s", .dir = "pre", .variant = "pre", .scheme = config.model.residual};
  line.config = result_config(config);
  line.summary.eval_step = 12;
  line.summary.curve = {{1, 2}, {2, 1}, {3, 0.5}};
  return line;
}

TEST(RecordFacts, BaselineAndFlopsAreThoseOfTheRun) {
  for (const std::string& family : other_families()) {
    const RunConfig config = tiny_family(family);
    runs::RecordLine line = evaluated_line(config);
    fill_in_facts(config, line);
    const Trainer trainer(config);
    EXPECT_EQ(line.summary.baseline, trainer.evaluate().baseline) << family;
    EXPECT_EQ(line.summary.step_flops, 3 * trainer.model().forward_flops(4)) << family;
  }
}

TEST(RecordFacts, WhatWasMeasuredStays) {
  runs::RecordLine line = evaluated_line(tiny_config());
  line.summary.baseline = 2.5;
  line.summary.step_flops = 7;
  fill_in_facts(tiny_config(), line);
  EXPECT_EQ(line.summary.baseline, 2.5);
  EXPECT_EQ(line.summary.step_flops, 7);
}

TEST(RecordFacts, NoBaselineWhereTheDataAreNotHere) {
  const RunConfig config = tiny_config({"data.source=text", "data.train=[gone.txt]"});
  runs::RecordLine line = evaluated_line(config);
  fill_in_facts(config, line);
  EXPECT_TRUE(std::isnan(line.summary.baseline));
  EXPECT_GT(line.summary.step_flops, 0);
}

TEST(RecordFacts, ARecordFillsInWhatItsLinesLack) {
  const TemporaryFolder folder("record_facts");
  const RunConfig config = tiny_config();
  io::write_file_atomic(folder / "r.jsonl", runs::to_line(evaluated_line(config)) + "\n");
  const auto found = SweepRecord(folder / "r.jsonl").find(config);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->summary.baseline, Trainer(config).evaluate().baseline);
}

}  // namespace record_facts_test
}  // namespace siamese::train
