// Gradients, changed passes and the use of streams against a direct computation on a small model; the whole analysis.
#include "siamese/eval/analysis.h"

#include <cmath>

#include "tests/eval/analysis_cases.h"

#include "siamese/base/check.h"
#include "siamese/eval/changes.h"
#include "siamese/eval/depth_gradients.h"
#include "siamese/eval/stream_use.h"

namespace siamese::eval {
namespace {

namespace measuring {

using analysing::Case;
using analysing::Family;
using analysing::Hooks;
using analysing::looked;

// A leaf in the place of the streams, or of one branch's input: its gradient is the one.
TEST(DepthGradients, AreThoseOfLeaves) {
  for (const char* const scheme : {"siamese", "resi_dual", "post", "hybrid", "attn_res"}) {
    const Case of(scheme);
    runs::AnalysisRecord record = looked(of, 48);
    {
      DepthGradients gradients(*of.model, of.batch.weight);
      gradients.add(GivenBatch(*of.model, of.samples.batch(0, 1)));
      gradients.add(GivenBatch(*of.model, of.samples.batch(1, 3)));
      gradients.fill(record);
    }
    const auto mean_loss = [&](Hooks& hooks) {
      return of.model->losses(of.batch.inputs, {.stack = {.intervention = &hooks}, .normalizer = of.batch.weight})
          .objective;
    };
    const auto places = of.streams();
    for (size_t place = 0; place < 7; ++place) {
      std::vector<at::Tensor> leaves;
      Hooks hooks;
      hooks.first = place;
      hooks.change = [&](size_t next, residual::Streams streams) {
        if (next != place) return streams;
        streams = places[place];
        for (residual::Stream& stream : streams.list) {
          stream.value = leaves.emplace_back(stream.value.detach().clone().set_requires_grad(true));
        }
        return streams;
      };
      mean_loss(hooks).backward();
      for (size_t k = 0; k < leaves.size(); ++k) {
        const double expected = leaves[k].grad().defined() ? leaves[k].grad().norm().item<double>() : 0;
        EXPECT_NEAR(record.places[place].streams[k].gradient, expected, 1e-4 * (expected + 1e-3)) << scheme << place;
      }
      if (place == 6) continue;
      at::Tensor leaf;
      Hooks at_branch;
      at_branch.see_input = [&](const residual::Site& site, const at::Tensor& input) {
        if (site.index != static_cast<int64_t>(place)) return input;
        return leaf = input.detach().clone().set_requires_grad(true);
      };
      mean_loss(at_branch).backward();
      const double expected = leaf.grad().norm().item<double>();
      EXPECT_NEAR(record.places[place].branch->input_gradient, expected, 1e-4 * expected) << scheme << place;
    }
    of.model->parameters().zero_grad();
    Hooks none;
    mean_loss(none).backward();
    double squares = 0;
    for (const auto& parameter : of.model->parameters().list()) {
      if (parameter.name.starts_with("blocks.1.attention") && parameter.value.grad().defined()) {
        squares += parameter.value.grad().square().sum().item<double>();
      }
    }
    EXPECT_NEAR(record.places[2].branch->parameter_gradient, std::sqrt(squares), 1e-4 * std::sqrt(squares));
    of.model->parameters().zero_grad();
  }
}

TEST(Changes, AreTheLossWithSilentSublayersAndCutStreams) {
  EXPECT_EQ(ranges_left_out(5).size(), 5U + 4U + 2U);
  EXPECT_EQ(ranges_left_out(5, /*all=*/true).size(), 5U + 4U + 3U + 2U + 1U);
  for (const char* const scheme : {"siamese", "pre", "hc(streams=2)"}) {
    Case of(scheme);
    std::vector<Change> changes = sublayers_left_out(of.config.blocks);
    for (const Change& change : ranges_left_out(of.config.blocks, true)) changes.push_back(change);
    const size_t left_out = changes.size();
    ASSERT_EQ(left_out, 6U + 3U + 2U + 1U);
    for (const Change& change : streams_cut(*of.model, of.batch)) changes.push_back(change);
    EXPECT_EQ(changes.size() - left_out, scheme == std::string("pre") ? 0U : 2U * (2 * 3 + 1));
    const size_t by_block = changes.size();
    for (const Change& change : streams_cut(*of.model, of.batch, /*all_sites=*/true)) changes.push_back(change);
    EXPECT_EQ(changes.size() - by_block, scheme == std::string("pre") ? 0U : 2U * (2 * 6 + 1));
    const size_t cut = changes.size();
    const std::string first = of.streams()[3].list[0].name;
    changes.push_back({.kind = Change::Kind::channel_zero, .first = 3, .stream = first, .channel = 5});
    ChangedLosses losses(*of.model, changes);
    losses.add(GivenBatch(*of.model, of.samples.batch(0, 1)));
    losses.add(GivenBatch(*of.model, of.samples.batch(1, 3)));
    EXPECT_NEAR(losses.unchanged(), of.loss(nullptr), 1e-5);
    const auto places = of.streams();
    Hooks level;
    level.change = [&](size_t next, residual::Streams streams) {
      if (next != 3) return streams;
      streams.list[0].value = streams.list[0].value.clone();
      streams.list[0].value.select(-1, 5).zero_();
      return streams;
    };
    EXPECT_NEAR(losses.loss(cut), of.loss(&level), 1e-5) << scheme;
    for (size_t i = left_out; i < cut; ++i) {
      const Change& change = changes[i];
      Hooks hooks;
      hooks.change = [&](size_t next, residual::Streams streams) {
        for (size_t k = 0; k < streams.list.size(); ++k) {
          if (next < change.first || streams.list[k].name != change.stream) continue;
          const at::Tensor& then = places[change.first][k];
          streams.list[k].value = change.kind == Change::Kind::zero ? at::zeros_like(then) : then;
        }
        return streams;
      };
      EXPECT_NEAR(losses.loss(i), of.loss(&hooks), 1e-5) << scheme << i;
    }
    for (size_t i = 0; i < left_out; ++i) {
      Case silent(scheme);  // the same weights
      const at::NoGradGuard no_grad;
      for (size_t index = changes[i].first; index < changes[i].last; ++index) {
        const residual::Site site = silent.model->stack().sites()[index];
        const std::string out =
            "blocks." + std::to_string(site.block) + "." + std::string(enum_text(site.kind)) + ".out.weight";
        silent.model->parameters().find(out)->value.zero_();
      }
      EXPECT_NEAR(losses.loss(i), silent.loss(nullptr), 1e-5) << scheme << i;
    }
  }
}

// What blocks hand on beside the streams stays as the attention before it makes it: a silent one still makes it.
TEST(Changes, HandOnWhatAttentionLeavesForLaterBlocks) {
  for (const Family family : {Family::lm, Family::vit}) {
    for (const models::ModelConfig& config : models::value_mixings(family)) {
      Case of(config);
      std::vector<Change> changes = sublayers_left_out(config.blocks);
      for (const Change& change : ranges_left_out(config.blocks)) changes.push_back(change);
      const size_t left_out = changes.size();
      for (size_t place = 0; place < 6; ++place) {  // X at another value from here on, in a pass that begins here
        changes.push_back({.kind = Change::Kind::channel_zero, .first = place, .stream = "X", .channel = 5});
      }
      ChangedLosses losses(*of.model, changes);
      losses.add(GivenBatch(*of.model, of.samples.batch(0, 1)));
      losses.add(GivenBatch(*of.model, of.samples.batch(1, 3)));
      EXPECT_NEAR(losses.unchanged(), of.loss(nullptr), 1e-5);
      for (size_t i = left_out; i < changes.size(); ++i) {
        Hooks level;  // the whole pass, from its beginning
        level.change = [&](size_t next, residual::Streams streams) {
          if (next != changes[i].first) return streams;
          streams.list[0].value = streams.list[0].value.clone();
          streams.list[0].value.select(-1, 5).zero_();
          return streams;
        };
        EXPECT_NEAR(losses.loss(i), of.loss(&level), 1e-5) << i;
      }
      for (size_t i = 0; i < left_out; ++i) {
        Case silent(config);
        const at::NoGradGuard no_grad;
        for (size_t index = changes[i].first; index < changes[i].last; ++index) {
          const residual::Site site = silent.model->stack().sites()[index];
          for (const char* const what : {"weight", "bias"}) {
            const std::string out =
                "blocks." + std::to_string(site.block) + "." + std::string(enum_text(site.kind)) + ".out." + what;
            const auto* const found = silent.model->parameters().find(out);
            if (found != nullptr) found->value.zero_();
          }
        }
        EXPECT_NEAR(losses.loss(i), silent.loss(nullptr), 1e-5) << i;
      }
    }
  }
}

TEST(Analyze, TakesModelsWithValuesOfEarlierBlocks) {
  for (const Family family : models::all_families()) {
    for (const models::ModelConfig& config : models::value_mixings(family)) {
      const Case of(config);
      const Analysis analysis =
          analyze(*of.model, of.config, of.samples, {.samples = 3, .lens_tokens = 20, .changed_samples = 2});
      for (const runs::PlaceAnalysis& place : analysis.record.places) {
        EXPECT_TRUE(!place.branch || std::isfinite(place.branch->loss_without + place.branch->parameter_gradient));
      }
      for (const runs::RangeAnalysis& range : analysis.record.ranges) EXPECT_TRUE(std::isfinite(range.loss));
    }
  }
}

TEST(Changes, AChannelIsSetToItsMean) {
  const Case of("siamese");
  ChangedLosses losses(*of.model, {{.kind = Change::Kind::channel_mean, .first = 4, .stream = "Y", .channel = 7}});
  losses.add(of.batch);
  Hooks level;
  level.change = [&](size_t next, residual::Streams streams) {
    if (next != 4) return streams;
    const at::Tensor y = streams.list[1].value.clone();
    y.select(-1, 7).fill_(y.select(-1, 7).mean().item<double>());
    streams.list[1].value = y;
    return streams;
  };
  EXPECT_NEAR(losses.loss(0), of.loss(&level), 1e-5);
  EXPECT_GT(std::abs(losses.loss(0) - losses.unchanged()), 1e-5);
}

TEST(StreamUse, IsWhatAReadLosesWithoutAStream) {
  const Case of("siamese");
  runs::AnalysisRecord record = looked(of, 48);
  StreamUse use(*of.model);
  use.add(GivenBatch(*of.model, of.samples.batch(0, 1)));
  use.add(GivenBatch(*of.model, of.samples.batch(1, 3)));
  use.fill(record);
  EXPECT_TRUE(use.tensors().empty());
  const auto places = of.streams();
  const at::NoGradGuard no_grad;
  const models::Stack& stack = of.model->stack();
  for (size_t place = 0; place < 7; ++place) {
    const auto read = [&](const residual::Streams& streams) {
      const at::Tensor made =
          place < 6 ? stack.junction(place).read(streams, nullptr).branch_input : stack.topology().close(streams);
      return made.to(at::kDouble);
    };
    const at::Tensor whole = read(places[place]);
    const double x = (whole - read(residual::alone(places[place], 1))).norm(2, -1).mean().item<double>();
    const double y = (whole - read(residual::alone(places[place], 0))).norm(2, -1).mean().item<double>();
    EXPECT_NEAR(record.places[place].streams[0].share, x / (x + y), 1e-5);
    EXPECT_NEAR(record.places[place].streams[1].share, y / (x + y), 1e-5);
  }
  const Case mixed("hc(streams=3)");
  record = looked(mixed, 48);
  StreamUse weights(*mixed.model);
  weights.add(GivenBatch(*mixed.model, mixed.samples.batch(0, 1)));
  weights.add(GivenBatch(*mixed.model, mixed.samples.batch(1, 3)));
  weights.fill(record);
  const residual::StreamWeights said = mixed.model->stack().junction(3).weights(mixed.streams()[3]);
  EXPECT_NEAR(record.places[3].streams[2].weight, said.input.select(-1, 2).mean().item<double>(), 1e-5);
  const at::Tensor apart = (said.mix - at::eye(3)).square().sum({-2, -1}).sqrt() / std::sqrt(3.0);
  EXPECT_NEAR(record.places[3].branch->mix_distance, apart.mean().item<double>(), 1e-5);
  ASSERT_EQ(weights.tensors().size(), 1U);
  EXPECT_EQ(weights.tensors()[0].value.sizes(), (at::IntArrayRef{6, 3}));
}

// Query times key gain of a read, or of the close. The first read has one source and no query.
at::Tensor depth_query(const Case& of, size_t place) {
  const auto& sites = of.model->stack().sites();
  if (place == 0) return at::zeros({of.config.width}, at::kDouble);
  const std::string at = place < sites.size() ? "blocks." + std::to_string(sites[place].block) + "." +
                                                    std::string(enum_text(sites[place].kind)) + "_junction"
                                              : "close";
  const auto value = [&](const char* name) { return of.model->parameters().find(at + name)->value.to(at::kDouble); };
  return value(".query") * value(".key_norm.weight");
}

// The softmax over depth, of every read and of the close.
TEST(StreamUse, HasTheDepthAttentionMap) {
  for (const char* const scheme : {"attn_res", "attn_res(block=1)"}) {
    const Case of(scheme);
    runs::AnalysisRecord record = looked(of, 48);
    StreamUse use(*of.model);
    use.add(GivenBatch(*of.model, of.samples.batch(0, 1)));
    use.add(GivenBatch(*of.model, of.samples.batch(1, 3)));
    use.fill(record);
    ASSERT_EQ(use.tensors().size(), 1U);
    EXPECT_EQ(use.tensors()[0].name, "depth/weights");
    const at::Tensor map = use.tensors()[0].value;
    const auto places = of.streams();
    const at::NoGradGuard no_grad;
    ASSERT_EQ(map.sizes(), (at::IntArrayRef{7, static_cast<int64_t>(places[6].list.size())})) << scheme;
    for (size_t place = 0; place < 7; ++place) {
      std::vector<at::Tensor> scores;
      for (const residual::Stream& stream : places[place].list) {
        const at::Tensor v = stream.value.to(at::kDouble);
        const at::Tensor rms = (v.square().mean(-1, true) + of.config.norm_eps).sqrt();
        scores.push_back((v / rms * depth_query(of, place)).sum(-1));
      }
      const at::Tensor expected = at::softmax(at::stack(scores, -1), -1).mean({0, 1});
      for (size_t k = 0; k < places[place].list.size(); ++k) {
        const double wanted = expected[static_cast<int64_t>(k)].item<double>();
        EXPECT_NEAR(record.places[place].streams[k].weight, wanted, 1e-5) << scheme << place;
        EXPECT_NEAR(map[static_cast<int64_t>(place)][static_cast<int64_t>(k)].item<double>(), wanted, 1e-5);
      }
      for (auto k = static_cast<int64_t>(places[place].list.size()); k < map.size(1); ++k) {
        EXPECT_TRUE(std::isnan(map[static_cast<int64_t>(place)][k].item<double>()));
      }
    }
  }
}

TEST(Analyze, RunsInEveryFamilyAndReadsBack) {
  for (const Family family : models::all_families()) {
    for (const std::string& scheme : models::schemes_of(family)) {
      const Case of(scheme, family);
      std::string last;
      const Analysis analysis =
          analyze(*of.model, of.config, of.samples, {.samples = 5, .lens_tokens = 20, .changed_samples = 2},
                  [&](const std::string& what, int64_t, int64_t) { last = what; });
      EXPECT_EQ(last, "changed passes");
      const runs::AnalysisRecord& record = analysis.record;
      const std::string what = models::case_name(family, scheme);
      EXPECT_EQ(record.samples, 5) << what;
      EXPECT_EQ(record.changed_samples, 2);
      EXPECT_EQ(record.places.size(), 7U);
      EXPECT_EQ(record.ranges.size(), 3U + 2U);
      const std::string text = runs::to_json(record);
      EXPECT_EQ(runs::to_json(runs::read_analysis(text, "here")), text);
      const runs::LensRecord& end = record.places.back().lens;
      if (family == Family::dit) {
        EXPECT_EQ(end.distance, 0) << what;
        EXPECT_GT(end.loss, 0);
      } else {
        EXPECT_EQ(end.agreement, 1) << what;
        EXPECT_NEAR(end.kl, 0, 1e-6) << what;
      }
      for (const runs::PlaceAnalysis& place : record.places) {
        EXPECT_TRUE(std::isfinite(place.rank + place.entropy)) << what;
        EXPECT_TRUE(!place.branch || std::isfinite(place.branch->loss_without)) << what;
        for (const runs::StreamAnalysis& stream : place.streams) {
          EXPECT_TRUE(std::isfinite(stream.values.norm + stream.values.kurtosis + stream.token_mean)) << what;
        }
      }
      EXPECT_TRUE(std::isfinite(record.peaks[0].loss_mean + record.peaks[0].loss_zero)) << what;
      const runs::BranchAnalysis& ffn = *record.places[3].branch;
      EXPECT_EQ(std::isfinite(ffn.routing_entropy), family == Family::moe);
      if (family == Family::moe) {
        EXPECT_GE(ffn.largest_load, 1);
        EXPECT_LE(ffn.routing_entropy, 1 + 1e-12);
      }
      for (const models::NamedTensor& tensor : analysis.tensors) EXPECT_GT(tensor.value.numel(), 0) << tensor.name;
    }
  }
}

TEST(Analyze, LeavesOutAllRangesWhereAsked) {
  const Case of("siamese");
  const runs::AnalysisRecord some = analyze(*of.model, of.config, of.samples, {.samples = 2}).record;
  const runs::AnalysisRecord all = analyze(*of.model, of.config, of.samples, {.samples = 2, .all_ranges = true}).record;
  ASSERT_EQ(all.ranges.size(), 3U + 2U + 1U);
  EXPECT_EQ(all.ranges.back().first, 0);
  EXPECT_EQ(all.ranges.back().blocks, 3);
  for (size_t i = 0; i < some.ranges.size(); ++i) EXPECT_EQ(all.ranges[i].loss, some.ranges[i].loss);
}

TEST(Analyze, CutsStreamsAtEverySiteWhereAsked) {
  const Case of("siamese");
  const runs::AnalysisRecord some = analyze(*of.model, of.config, of.samples, {.samples = 2}).record;
  const runs::AnalysisRecord all = analyze(*of.model, of.config, of.samples, {.samples = 2, .all_sites = true}).record;
  for (size_t place = 0; place < 7; ++place) {
    for (size_t k = 0; k < 2; ++k) {
      const runs::StreamAnalysis &few = some.places[place].streams[k], &more = all.places[place].streams[k];
      EXPECT_EQ(std::isfinite(few.loss_zeroed), place % 2 == 0) << place;
      EXPECT_TRUE(std::isfinite(more.loss_zeroed)) << place;
      EXPECT_EQ(std::isfinite(more.loss_frozen), place < 6) << place;
      EXPECT_TRUE(place % 2 == 1 || few.loss_zeroed == more.loss_zeroed) << place;
    }
  }
}

TEST(Analyze, NamesTheTokensOfTheLargestValues) {
  data::DataConfig data;
  data.source = data::Source::text;
  runs::AnalysisRecord record;
  record.peaks = {{.token = 'h'}, {.token = '\n'}, {.token = -1}};
  name_tokens(record, *words_of_source(data));
  EXPECT_EQ(record.peaks[0].text, "h");
  EXPECT_EQ(record.peaks[1].text, "\n");
  EXPECT_EQ(record.peaks[2].text, "");  // of an image
  record.peaks[0].text = "";
  name_tokens(record, *words_of_ids());
  EXPECT_EQ(record.peaks[0].text, "");  // numbers are no text
}

TEST(Analyze, RefusesAModelThatDiverged) {
  const Case of("pre");
  const at::NoGradGuard no_grad;
  of.model->parameters().find("embedding.weight")->value.fill_(std::nan(""));
  EXPECT_THROW(analyze(*of.model, of.config, of.samples, {.samples = 2}), DivergedError);
}

}  // namespace measuring
}  // namespace
}  // namespace siamese::eval
