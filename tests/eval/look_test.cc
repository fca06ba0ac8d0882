// What is seen at every place, against a direct computation on a small model.
#include "siamese/eval/look.h"

#include <array>
#include <cmath>
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
        if (i == 6 || k >= places[i + 1].list.size()) continue;
        if (places[i + 1].list[k].name != places[i].list[k].name) continue;
        const at::Tensor y = places[i + 1][k].to(at::kDouble);
        const at::Tensor cosine = (x * y).sum(-1) / (x.norm(2, -1) * y.norm(2, -1));
        EXPECT_NEAR(place.streams[k].next_cosine, cosine.mean().item<double>(), 1e-5) << scheme << i;
      }
      if (places[i].list.size() > 1) {
        const at::Tensor x = places[i][0].to(at::kDouble), y = places[i][1].to(at::kDouble);
        const at::Tensor cosine = (x * y).sum(-1) / (x.norm(2, -1) * y.norm(2, -1));
        ASSERT_FALSE(place.pairs.empty());
        EXPECT_NEAR(place.pairs[0].cosine, cosine.mean().item<double>(), 1e-5);
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
