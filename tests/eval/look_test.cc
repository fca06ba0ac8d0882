// What is seen at every place, against a direct computation on a small model.
#include "siamese/eval/look.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "tests/eval/analysis_cases.h"

namespace siamese::eval {
namespace {

namespace looking {

using analysing::Case;
using analysing::Hooks;
using analysing::looked;

class LeavesOutFrom : public models::Intervention {
 public:
  explicit LeavesOutFrom(size_t first) : first_(first) {}
  bool leaves_out(const residual::Site& site) override { return static_cast<size_t>(site.index) >= first_; }

 private:
  size_t first_;
};

// What each branch gave, site by site.
class BranchOutputs : public residual::Recorder {
 public:
  void stream(const residual::Site&, const std::string&, const at::Tensor&, const at::Tensor&) override {}
  void branch(const residual::Site&, const at::Tensor&, const at::Tensor& output) override {
    list.push_back(output.detach().to(at::kDouble));
  }
  std::vector<at::Tensor> list;
};

double mean_cosine(const at::Tensor& x, const at::Tensor& y) {
  return ((x * y).sum(-1) / (x.norm(2, -1) * y.norm(2, -1))).mean().item<double>();
}

// Element by element, in double.
void expect_statistics(const runs::ValueStatistics& got, const at::Tensor& values, const std::string& what) {
  const at::Tensor x = values.detach().to(at::kDouble).contiguous();
  const double* const data = x.const_data_ptr<double>();
  const int64_t width = x.size(-1), rows = x.numel() / width;
  double mean = 0, norms = 0, squares = 0, largest = 0, second = 0, fourth = 0;
  for (int64_t row = 0; row < rows; ++row) {
    double of_row = 0;
    for (int64_t i = row * width; i < (row + 1) * width; ++i) {
      mean += data[i] / static_cast<double>(x.numel());
      of_row += data[i] * data[i];
      largest = std::max(largest, std::abs(data[i]));
    }
    norms += std::sqrt(of_row);
    squares += of_row;
  }
  for (int64_t i = 0; i < x.numel(); ++i) {
    second += std::pow(data[i] - mean, 2) / static_cast<double>(x.numel());
    fourth += std::pow(data[i] - mean, 4) / static_cast<double>(x.numel());
  }
  const double kurtosis = fourth / (second * second);
  EXPECT_NEAR(got.norm, norms / static_cast<double>(rows), 1e-4) << what;
  EXPECT_NEAR(got.rms, std::sqrt(squares / static_cast<double>(x.numel())), 1e-5) << what;
  EXPECT_NEAR(got.max, largest, 1e-5) << what;
  EXPECT_NEAR(got.kurtosis, kurtosis, 1e-4 * kurtosis) << what;
}

// [rows, width] of a state, without the two tokens of each sample that do not count.
at::Tensor counted_rows(const at::Tensor& state) {
  return state.narrow(1, 2, state.size(1) - 2).flatten(0, 1).to(at::kDouble);
}

TEST(Look, SeesTheStreamsAndBranches) {
  for (const char* const scheme : {"siamese", "pre", "attn_res(block=1)", "span"}) {
    const Case of(scheme);
    const runs::AnalysisRecord record = looked(of, 48);
    const auto places = of.streams();
    ASSERT_EQ(record.places.size(), 7U);
    std::vector<at::Tensor> inputs;
    Hooks hooks;
    hooks.see_input = [&](const residual::Site&, const at::Tensor& input) { return inputs.emplace_back(input); };
    of.loss(&hooks);
    BranchOutputs outputs;
    of.model->losses(of.batch.inputs, {.stack = {.recorder = &outputs}});
    ASSERT_EQ(outputs.list.size(), 6U);
    double largest = 0;
    for (size_t i = 0; i < places.size(); ++i) {
      const runs::PlaceAnalysis& place = record.places[i];
      EXPECT_EQ(place.kind, i == 6 ? "close" : i % 2 == 0 ? "attention" : "ffn");
      ASSERT_EQ(place.streams.size(), places[i].list.size()) << scheme;
      for (size_t k = 0; k < place.streams.size(); ++k) {
        const at::Tensor x = places[i][k].to(at::kDouble);
        EXPECT_EQ(place.streams[k].name, places[i].list[k].name);
        expect_statistics(place.streams[k].values, x, std::string(scheme) + std::to_string(i));
        largest = std::max(largest, testing::largest(x));
        const double token_mean = (x.mean(1).square().sum(-1) / x.square().sum(-1).mean(1)).mean().item<double>();
        EXPECT_NEAR(place.streams[k].token_mean, token_mean, 1e-5) << scheme << i;
        if (i == 6) {
          EXPECT_TRUE(std::isnan(place.streams[k].branch_cosine)) << scheme;  // no branch comes after the close
        } else {
          EXPECT_NEAR(place.streams[k].branch_cosine, mean_cosine(x, outputs.list[i]), 1e-5) << scheme << i;
        }
        if (i == 6 || k >= places[i + 1].list.size()) continue;
        if (places[i + 1].list[k].name != places[i].list[k].name) continue;
        const at::Tensor y = places[i + 1][k].to(at::kDouble);
        EXPECT_NEAR(place.streams[k].next_cosine, mean_cosine(x, y), 1e-5) << scheme << i;
      }
      if (places[i].list.size() > 1) {
        const at::Tensor x = places[i][0].to(at::kDouble), y = places[i][1].to(at::kDouble);
        ASSERT_FALSE(place.pairs.empty());
        EXPECT_NEAR(place.pairs[0].cosine, mean_cosine(x, y), 1e-5);
      }
      EXPECT_EQ(place.branch.has_value(), i < 6);
      if (i == 6) continue;
      expect_statistics(place.branch->input, inputs[i], "input");
      if (scheme != std::string("pre")) continue;  // what it adds is its branch
      expect_statistics(place.branch->output, places[i + 1][0].to(at::kDouble) - places[i][0].to(at::kDouble),
                        "output");
    }
    ASSERT_EQ(record.peaks.size(), kMostPeaks);
    std::set<std::array<double, 4>> values;  // a source that is only carried on would be listed at every place
    for (const runs::PeakAnalysis& one : record.peaks) {
      values.insert({one.value, static_cast<double>(one.sample), static_cast<double>(one.position),
                     static_cast<double>(one.channel)});
    }
    EXPECT_EQ(values.size(), record.peaks.size()) << scheme;
    const runs::PeakAnalysis& peak = record.peaks.front();
    EXPECT_NEAR(std::abs(peak.value), largest, 1e-5);
    for (const residual::Stream& stream : places[static_cast<size_t>(peak.place)].list) {
      if (stream.name != peak.stream) continue;
      EXPECT_NEAR(stream.value[peak.sample][peak.position][peak.channel].item<double>(), peak.value, 1e-5);
    }
    EXPECT_EQ(peak.token, of.batch.given.tokens[peak.sample][peak.position].item<int64_t>());
  }
}

// The largest of everything at once: of all places, streams, samples, positions and channels, whatever piece or stream
// they came with.
TEST(Look, PeaksAreTheLargestOfEverything) {
  for (const char* const scheme : {"siamese", "pre", "attn_res(block=1)", "span"}) {
    Case of(scheme);
    {  // most of them in one stream of one place, as massive activations are
      const at::NoGradGuard no_grad;
      of.model->parameters().find("blocks.1.ffn.out.weight")->value.select(0, 3).mul_(40);
    }
    const runs::AnalysisRecord record = looked(of, 48);
    struct Value {
      double value;
      std::array<int64_t, 4> at;  // place, sample, position, channel
    };
    std::vector<Value> all;
    const auto places = of.streams();
    for (size_t place = 0; place < places.size(); ++place) {
      for (const residual::Stream& stream : places[place].list) {
        bool carried = false;
        if (place > 0) {
          for (const residual::Stream& earlier : places[place - 1].list) {
            carried = carried || at::equal(earlier.value, stream.value);
          }
        }
        if (carried) continue;
        const at::Tensor x = stream.value.to(at::kDouble).contiguous();
        const int64_t tokens = x.size(1), width = x.size(2);
        for (int64_t i = 0; i < x.numel(); ++i) {
          all.push_back({x.const_data_ptr<double>()[i],
                         {static_cast<int64_t>(place), i / width / tokens, i / width % tokens, i % width}});
        }
      }
    }
    std::sort(all.begin(), all.end(),
              [](const Value& a, const Value& b) { return std::abs(a.value) > std::abs(b.value); });
    ASSERT_EQ(record.peaks.size(), kMostPeaks);
    std::map<std::pair<int64_t, std::string>, int> of_one;
    for (size_t i = 0; i < kMostPeaks; ++i) {
      const runs::PeakAnalysis& peak = record.peaks[i];
      EXPECT_NEAR(peak.value, all[i].value, 1e-4 * std::abs(all[i].value)) << scheme << i;
      const std::array<int64_t, 4> at = {peak.place, peak.sample, peak.position, peak.channel};
      const bool found = std::any_of(all.begin(), all.begin() + kMostPeaks + 2,  // two that are nearly equal may swap
                                     [&](const Value& one) { return one.at == at; });
      EXPECT_TRUE(found) << scheme << i;
      ++of_one[{peak.place, peak.stream}];
    }
    int most = 0;
    for (const auto& [where, count] : of_one) most = std::max(most, count);
    EXPECT_GT(most, 10) << scheme;
  }
}

// [places, positions] and [places, places], cell by cell.
TEST(Look, ArraysHoldTheNormsAndTheLikenessOfPlaces) {
  const Case of("siamese");
  Look look(*of.model);
  look.add(GivenBatch(*of.model, of.samples.batch(0, 1)), 1000, 0);
  look.add(GivenBatch(*of.model, of.samples.batch(1, 3)), 1000, 1);
  std::map<std::string, at::Tensor> arrays;
  for (const models::NamedTensor& tensor : look.tensors()) arrays[tensor.name] = tensor.value;
  const auto places = of.streams();
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> states;
  for (size_t place = 0; place < 7; ++place) {
    for (const residual::Stream& stream : places[place].list) {
      const at::Tensor expected = stream.value.to(at::kDouble).norm(2, -1).mean(0),
                       &norms = arrays.at("stream/" + stream.name + "/norm");
      ASSERT_EQ(norms.sizes(), (at::IntArrayRef{7, of.config.context}));
      EXPECT_LT(testing::largest(norms[static_cast<int64_t>(place)].to(at::kDouble) - expected), 1e-4) << place;
    }
    states.push_back(counted_rows(of.model->stack().topology().lens(places[place])));
  }
  const at::Tensor &cosines = arrays.at("similarity/cosine"), &cka = arrays.at("similarity/cka");
  for (size_t i = 0; i < 7; ++i) {
    for (size_t j = 0; j < 7; ++j) {
      const auto row = static_cast<int64_t>(i), column = static_cast<int64_t>(j);
      EXPECT_NEAR(cosines[row][column].item<double>(), mean_cosine(states[i], states[j]), 1e-5) << i << j;
      const at::Tensor x = states[i] - states[i].mean(0, true), y = states[j] - states[j].mean(0, true);
      const double alike = (x.t().mm(y).square().sum() / (x.t().mm(x).norm() * y.t().mm(y).norm())).item<double>();
      EXPECT_NEAR(cka[row][column].item<double>(), alike, 1e-5) << i << j;
    }
  }
  EXPECT_LT(cosines[0][6].item<double>(), 0.99);
}

TEST(Look, EffectiveDepthIsWhereTheLensStaysNear) {
  const auto depth_of = [](const std::vector<double>& apart, bool images) {
    std::vector<runs::PlaceAnalysis> places;
    for (const double one : apart) (images ? places.emplace_back().lens.distance : places.emplace_back().lens.kl) = one;
    return effective_depth(places);
  };
  EXPECT_EQ(depth_of({3, 5, 0.4, 0.6, 0.5, 0}, false), 4);  // near at 2, but it does not stay
  EXPECT_EQ(depth_of({3, 5, 4, 2, 1, 0}, false), 5);
  EXPECT_EQ(depth_of({3, 0.2, 0}, true), 1);
  EXPECT_EQ(depth_of({0, 0, 0}, false), 0);
  EXPECT_TRUE(std::isnan(depth_of({1, std::nan(""), 0}, false)));
  EXPECT_TRUE(std::isnan(depth_of({}, false)));
  const Case of("pre");
  const runs::AnalysisRecord record = looked(of, 4000);
  EXPECT_GT(record.effective_depth, 0);
  EXPECT_EQ(record.effective_depth, effective_depth(record.places));
}

// Token by token, in double.
TEST(Look, LensesReadTheCountedTokens) {
  for (const char* const scheme : {"siamese", "hc(streams=2)"}) {
    const Case of(scheme);
    const runs::AnalysisRecord record = looked(of, 4000);  // all of them
    const auto places = of.streams();
    const auto& lm = dynamic_cast<const models::LanguageModel&>(*of.model);
    const at::NoGradGuard no_grad;
    const auto shares = [&](size_t place, std::optional<size_t> only) {
      return at::log_softmax(lm.logits(of.model->stack().topology().lens(places[place], only)).to(at::kDouble), -1);
    };
    const at::Tensor whole = at::log_softmax(lm.logits(lm.hidden(of.batch.given.tokens)).to(at::kDouble), -1);
    for (size_t place = 0; place < 7; ++place) {
      for (int stream = -1; stream < 2; ++stream) {
        const at::Tensor said = shares(place, stream < 0 ? std::nullopt : std::optional<size_t>(stream));
        double agree = 0, kl = 0, loss = 0, tokens = 0;
        for (int64_t row = 0; row < 4; ++row) {
          for (int64_t i = 2; i < of.config.context; ++i) {  // those before do not count
            const at::Tensor p = whole[row][i], q = said[row][i];
            agree += p.argmax().item<int64_t>() == q.argmax().item<int64_t>() ? 1 : 0;
            kl += (p.exp() * (p - q)).sum().item<double>();
            loss -= q[of.batch.answers[row][i].item<int64_t>()].item<double>();
            ++tokens;
          }
        }
        const runs::PlaceAnalysis& seen = record.places[place];
        const runs::LensRecord& lens = stream < 0 ? seen.lens : seen.streams[static_cast<size_t>(stream)].lens;
        EXPECT_NEAR(lens.agreement, agree / tokens, 1e-9) << scheme << place;
        EXPECT_NEAR(lens.kl, kl / tokens, 1e-4) << scheme << place;
        EXPECT_NEAR(lens.loss, loss / tokens, 1e-4) << scheme << place;
      }
    }
    EXPECT_EQ(record.places[6].lens.agreement, 1);
    EXPECT_NEAR(record.places[6].lens.loss, of.loss(nullptr), 1e-5);
    EXPECT_LT(record.places[2].lens.agreement, 1);
  }
}

// In Pre-Norm a lens is the model with all sublayers from there on left out, in any family; of one stream, what is read
// out of its term alone.
TEST(Look, LensesOfImagesReadTheOutput) {
  for (const models::Family family : {models::Family::vit, models::Family::dit}) {
    for (const char* const scheme : {"pre", "siamese"}) {
      const Case of(scheme, family);
      const runs::AnalysisRecord record = looked(of, 48);
      const auto places = of.streams();
      const at::NoGradGuard no_grad;
      models::Inputs given = of.batch.given;
      if (family == models::Family::dit) {
        given.targets = at::zeros_like(of.model->read_out(of.model->state(given, {}), given));
      }
      const at::Tensor whole = of.model->pass(given, {}).output.to(at::kDouble);
      for (size_t place = 0; place < 7; ++place) {
        const auto& streams = record.places[place].streams;
        ASSERT_EQ(streams.size(), scheme == std::string("pre") ? 1U : 2U);
        for (int stream = -1; stream < static_cast<int>(streams.size()); ++stream) {
          const runs::LensRecord& lens =
              stream < 0 ? record.places[place].lens : streams[static_cast<size_t>(stream)].lens;
          at::Tensor said;
          if (streams.size() == 1) {
            LeavesOutFrom later(place);
            said = of.model->pass(given, {.intervention = &later}).output.to(at::kDouble);
          } else {
            const auto only = stream < 0 ? std::nullopt : std::optional<size_t>(stream);
            said = of.model->read_out(of.model->stack().topology().lens(places[place], only), given).to(at::kDouble);
          }
          const std::string what = models::case_name(family, scheme) + " " + std::to_string(place);
          if (family == models::Family::dit) {
            const at::Tensor noise = of.batch.answers.to(at::kDouble);
            const at::Tensor apart = said.narrow(1, 0, noise.size(1)) - noise;
            const double distance = ((said - whole).square().sum() / whole.square().sum()).item<double>();
            EXPECT_NEAR(lens.distance, distance, 1e-4 * distance + 1e-9) << what;
            EXPECT_NEAR(lens.loss, apart.square().mean().item<double>(), 1e-4) << what;
            EXPECT_TRUE(std::isnan(lens.agreement) && std::isnan(lens.kl)) << what;
            continue;
          }
          const at::Tensor p = at::log_softmax(whole, -1), q = at::log_softmax(said, -1);
          double agree = 0, kl = 0, loss = 0;
          for (int64_t row = 0; row < 4; ++row) {
            agree += p[row].argmax().item<int64_t>() == q[row].argmax().item<int64_t>() ? 0.25 : 0;
            kl += (p[row].exp() * (p[row] - q[row])).sum().item<double>() / 4;
            loss -= q[row][of.batch.answers[row].item<int64_t>()].item<double>() / 4;
          }
          EXPECT_NEAR(lens.agreement, agree, 1e-9) << what;
          EXPECT_NEAR(lens.kl, kl, 1e-4) << what;
          EXPECT_NEAR(lens.loss, loss, 1e-4) << what;
          EXPECT_TRUE(std::isnan(lens.distance)) << what;
        }
      }
    }
  }
}

TEST(Look, RanksTheStatesThatTheLensReads) {
  for (const char* const scheme : {"siamese", "post"}) {
    const Case of(scheme);
    const runs::AnalysisRecord record = looked(of, 4000);  // all tokens
    const auto places = of.streams();
    const at::NoGradGuard no_grad;
    for (size_t place = 0; place < 7; ++place) {
      const at::Tensor rows = counted_rows(of.model->stack().topology().lens(places[place]));
      ASSERT_EQ(rows.size(0), 4 * (of.config.context - 2));
      const at::Tensor singular = at::linalg_svdvals(rows - rows.mean(0, true));
      const at::Tensor q = singular / singular.sum(), p = singular.square() / singular.square().sum();
      const double rank = at::xlogy(q, q).sum().neg().exp().item<double>();
      EXPECT_NEAR(record.places[place].rank, rank, 1e-4 * rank) << scheme << place;
      EXPECT_NEAR(record.places[place].entropy, -at::xlogy(p, p).sum().item<double>(), 1e-4) << scheme << place;
    }
  }
}

TEST(Look, SeesHowTokensSpreadOverExperts) {
  const Case of("pre", models::Family::moe);
  const runs::AnalysisRecord record = looked(of, 48);
  const at::NoGradGuard no_grad;
  const at::Tensor counts = of.model->losses(of.batch.inputs, {}).expert_counts[1];
  double largest = 0, entropy = 0, all = 0;
  for (int64_t i = 0; i < 5; ++i) all += counts[i].item<double>();
  for (int64_t i = 0; i < 5; ++i) {
    const double load = counts[i].item<double>() / all;
    largest = std::max(largest, 5 * load);
    if (load > 0) entropy -= load * std::log(load) / std::log(5.0);
  }
  EXPECT_NEAR(record.places[3].branch->largest_load, largest, 1e-9);
  EXPECT_NEAR(record.places[3].branch->routing_entropy, entropy, 1e-9);
  EXPECT_TRUE(std::isnan(record.places[2].branch->largest_load));
}

}  // namespace looking
}  // namespace
}  // namespace siamese::eval
