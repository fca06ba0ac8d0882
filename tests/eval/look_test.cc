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
        EXPECT_NEAR(place.streams[k].values.norm, x.norm(2, -1).mean().item<double>(), 1e-4) << scheme << i;
        EXPECT_NEAR(place.streams[k].values.rms, x.square().mean().sqrt().item<double>(), 1e-5);
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
      EXPECT_NEAR(place.branch->input.rms, inputs[i].to(at::kDouble).square().mean().sqrt().item<double>(), 1e-5);
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
