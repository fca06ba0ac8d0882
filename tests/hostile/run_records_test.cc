// What stands in a run directory, damaged in every way: read, or refused in a sentence.
#include "tests/hostile/support.h"

#include "siamese/runs/analysis_record.h"
#include "siamese/runs/record_line.h"
#include "siamese/runs/run_info.h"
#include "siamese/runs/step_record.h"
#include "siamese/runs/sweep_file.h"

namespace siamese::hostile {
namespace {

TEST(HostileRunRecords, LinesAndFiles) {
  runs::StepRecord step{.step = 7, .loss = 2.5, .extra = {{"mse", 0.5}}};
  step.sites = {{0, 0, "ffn", 1, 2, 3, {{"X", 1, runs::kNone}}}};
  step.experts = {{1, {0.5, 0.5}}};
  runs::EvalRecord eval;
  eval.step = 7;
  eval.accuracy = runs::Accuracy{1, 2, {{"+", 1, 1, 2}}};
  eval.classification = runs::ClassificationRecord{{1, 2}, {2, 2}, {"a"}, {{1}}};
  runs::RecordLine line;
  line.dir = "d";
  line.config = {{"a.b", "1"}};
  line.data = {{1, 2, 3}, {}};
  line.summary.curve = {{1, 2}, {2, 1}, {1, 1}};
  line.stretches = {{.build = {"0.3.0", "abc", "", "2.13.0"}}};
  runs::RunInfo info;
  info.scheme = info.label = "pre";
  info.set = {"a.b"};
  info.says_set = true;
  info.stretches = line.stretches;
  runs::AnalysisRecord analysis{.run = "x", .made_by = runs::AnalysisMaker{.build = {"0.3.0", "abc", "", "2.13.0"}}};
  analysis.places = {{.kind = "close", .pairs = {{"X", "Y", 1}}}};
  for (const std::string& good : {runs::to_line(step), runs::to_line(eval), runs::to_line(line), runs::to_json(info),
                                  runs::to_json(runs::SweepFile{"s", {{"d", "v", 0.1, 1}}}), runs::to_json(analysis)}) {
    expect_holds_when_damaged(fuzz::check_run_records, good);
  }
}

}  // namespace
}  // namespace siamese::hostile
