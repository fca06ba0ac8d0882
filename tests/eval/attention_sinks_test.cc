// Where attention goes, against weights that are computed here by hand from what each block's attention sees.
#include "siamese/eval/attention_sinks.h"

#include <cmath>

#include "tests/eval/analysis_cases.h"

namespace siamese::eval {
namespace {

namespace sinks {

using analysing::Case;
using analysing::Family;

// The inputs of attention (after modulation) and the streams at each place.
class Inputs : public residual::Recorder {
 public:
  void stream(const residual::Site&, const std::string&, const at::Tensor&, const at::Tensor&) override {}
  void branch(const residual::Site& site, const at::Tensor& input, const at::Tensor&) override {
    if (site.kind == residual::SiteKind::attention) of_blocks.push_back(input.to(at::kDouble));
  }

  std::vector<at::Tensor> of_blocks;
};

at::Tensor parameter(const Case& of, int64_t block, const std::string& name) {
  const auto* const found = of.model->parameters().find("blocks." + std::to_string(block) + ".attention." + name);
  return found == nullptr ? at::Tensor() : found->value.detach().to(at::kDouble);
}

at::Tensor normed(const at::Tensor& row, const at::Tensor& gain, double eps) {
  return row / (row.square().mean() + eps).sqrt() * gain;
}

// Head `head` of the projected row, normed and rotated to `position`.
at::Tensor head_of(const Case& of, int64_t block, const at::Tensor& row, const std::string& part, int64_t head,
                   int64_t position) {
  const models::ModelConfig& config = of.config;
  const int64_t head_dim = config.width / config.heads;
  const int64_t begin = part == "q" ? 0 : config.width;
  const int64_t width = part == "q" ? config.width : config.kv_heads * head_dim;
  at::Tensor all = parameter(of, block, "qkv.weight").narrow(0, begin, width).mv(row);
  if (const at::Tensor bias = parameter(of, block, "qkv.bias"); bias.defined())
    all = all + bias.narrow(0, begin, width);
  const at::Tensor gain = parameter(of, block, part + "_norm.weight");
  if (gain.defined() && gain.size(0) == width) all = normed(all, gain, config.norm_eps);
  at::Tensor one = all.narrow(0, head * head_dim, head_dim);
  if (gain.defined() && gain.size(0) == head_dim && head_dim != width) one = normed(one, gain, config.norm_eps);
  if (config.sees_images() || config.positions == models::Positions::learned) return one;
  at::Tensor turned = one.clone();
  for (int64_t j = 0; j < head_dim / 2; ++j) {
    const double angle = static_cast<double>(position) *
                         std::pow(config.rope_theta, -2.0 * static_cast<double>(j) / static_cast<double>(head_dim));
    const double a = one[j].item<double>(), b = one[j + head_dim / 2].item<double>();
    turned[j] = a * std::cos(angle) - b * std::sin(angle);
    turned[j + head_dim / 2] = b * std::cos(angle) + a * std::sin(angle);
  }
  return turned;
}

struct Mean {
  double sum = 0, count = 0;
  void add(double value) {
    sum += value;
    ++count;
  }
  double value() const { return sum / count; }
};

// Token by token. `borders` of each row: where its documents begin.
void expect_by_hand(const Case& of, const std::vector<std::vector<int64_t>>& borders = {}) {
  Inputs inputs;
  std::vector<SinkSums> sums(static_cast<size_t>(of.config.blocks));
  const auto places = of.streams();
  class Watch : public models::AttentionWatch {
   public:
    Watch(std::vector<SinkSums>& sums, const std::vector<residual::Streams>& places) : sums_(sums), places_(places) {}
    void attention(const residual::Site& site, const models::WatchedAttention& watched) override {
      at::Tensor sizes;
      for (const residual::Stream& stream : places_[static_cast<size_t>(site.index)].list) {
        const at::Tensor own = stream.value.abs().amax(-1);
        sizes = sizes.defined() ? at::maximum(sizes, own) : own;
      }
      sums_[static_cast<size_t>(site.block)].add(watched, sizes);
    }

   private:
    std::vector<SinkSums>& sums_;
    const std::vector<residual::Streams>& places_;
  } watch(sums, places);
  const at::NoGradGuard no_grad;
  of.model->state(of.batch.given, {.recorder = &inputs, .watch = &watch});
  const int64_t rows = inputs.of_blocks[0].size(0), tokens = inputs.of_blocks[0].size(1);
  const double scale = 1 / std::sqrt(static_cast<double>(of.config.width / of.config.heads));
  for (int64_t block = 0; block < of.config.blocks; ++block) {
    const at::Tensor& x = inputs.of_blocks[static_cast<size_t>(block)];
    const int64_t window = of.config.window_of(block);
    for (int64_t head = 0; head < of.config.heads; ++head) {
      std::array<Mean, kFirstPositions> first;
      Mean largest;
      for (int64_t row = 0; row < rows; ++row) {
        std::vector<int64_t> begins = {0};
        if (!borders.empty()) {
          const auto& cut = borders[static_cast<size_t>(row)];
          begins.insert(begins.end(), cut.begin(), cut.end());
        }
        begins.push_back(tokens);
        for (size_t document = 0; document + 1 < begins.size(); ++document) {
          const int64_t begin = begins[document], end = begins[document + 1];
          int64_t massive = begin;
          double size = 0;
          for (int64_t t = begin; t < end; ++t) {
            for (const residual::Stream& stream : places[static_cast<size_t>(2 * block)].list) {
              const double own = stream.value[row][t].abs().max().item<double>();
              if (own > size) massive = t;
              size = std::max(size, own);
            }
          }
          std::vector<at::Tensor> keys;
          for (int64_t t = begin; t < end; ++t) {
            const int64_t kv_head = head * of.config.kv_heads / of.config.heads;
            keys.push_back(head_of(of, block, x[row][t], "k", kv_head, t - begin));
          }
          for (int64_t i = begin; i < end; ++i) {
            const at::Tensor q = head_of(of, block, x[row][i], "q", head, i - begin);
            std::vector<double> weight(static_cast<size_t>(end - begin), -1);
            double total = 0;
            for (int64_t j = begin; j < end; ++j) {
              const bool sees = of.config.sees_images() || (j <= i && (window == 0 || i - j < window));
              if (!sees) continue;
              const auto at = static_cast<size_t>(j - begin);
              weight[at] = std::exp(q.dot(keys[at]).item<double>() * scale);
              total += weight[at];
            }
            for (size_t p = 0; p < std::min<size_t>(kFirstPositions, weight.size()); ++p) {
              if (weight[p] >= 0) first[p].add(weight[p] / total);
            }
            if (const double on = weight[static_cast<size_t>(massive - begin)]; on >= 0) largest.add(on / total);
          }
        }
      }
      const SinkSums& seen = sums[static_cast<size_t>(block)];
      for (size_t p = 0; p < first.size(); ++p) {
        EXPECT_NEAR(seen.first(head, static_cast<int64_t>(p)), first[p].value(), 1e-5)
            << block << " " << head << " " << p;
      }
      EXPECT_NEAR(seen.largest(head), largest.value(), 1e-5) << block << " " << head;
    }
  }
}

models::ModelConfig lm_with(const std::function<void(models::ModelConfig&)>& change) {
  models::ModelConfig config = models::small_family(Family::lm, "siamese");
  change(config);
  models::resolve(config, {});
  return config;
}

TEST(AttentionSinks, AreTheWeightsByHand) {
  expect_by_hand(Case("siamese"));  // grouped heads, RoPE, and the norms that the scheme asks for
  expect_by_hand(Case("pre"));
  expect_by_hand(Case("siamese", Family::vit));
  expect_by_hand(Case("pre", Family::dit));
}

TEST(AttentionSinks, HonourWindowsNormsAndPositions) {
  expect_by_hand(Case(lm_with([](auto& config) {
    config.window = 3;
    config.window_pattern = "SF";
  })));
  expect_by_hand(Case(lm_with([](auto& config) { config.attention_norm = models::AttentionNormChoice::qk; })));
  expect_by_hand(Case(lm_with([](auto& config) { config.attention_norm = models::AttentionNormChoice::qk_full; })));
  expect_by_hand(Case(lm_with([](auto& config) { config.positions = models::Positions::learned; })));
}

TEST(AttentionSinks, StayInTheirDocument) {
  Case of("pre");
  of.batch.given.borders = {{5}, {1, 9}, {}, {2, 3, 8}};
  expect_by_hand(of, of.batch.given.borders);
}

// One row, an exact answer: scores of 0 give every visible token the same weight.
TEST(AttentionSinks, OfEvenAttentionAreEven) {
  const at::Tensor q = at::zeros({1, 5, 2, 4});
  SinkSums sums;
  sums.add({.heads = {q, q, {}}}, at::tensor({1.0, 3.0, 2.0, 3.0, 0.0}).reshape({1, 5}));
  EXPECT_NEAR(sums.first(0, 0), (1 + 1 / 2.0 + 1 / 3.0 + 1 / 4.0 + 1 / 5.0) / 5, 1e-6);
  EXPECT_NEAR(sums.first(1, 3), (1 / 4.0 + 1 / 5.0) / 2, 1e-6);
  EXPECT_NEAR(sums.largest(0), (1 / 2.0 + 1 / 3.0 + 1 / 4.0 + 1 / 5.0) / 4, 1e-6);  // token 1: of equals the first
  EXPECT_NEAR(sums.mean_first(), sums.first(0, 0), 1e-12);
  EXPECT_EQ(sums.sink_rate(), 1);  // 0.457
  SinkSums all;
  all.add({.heads = {q, q, {}}, .causal = false}, at::ones({1, 5}));
  EXPECT_NEAR(all.first(0, 2), 0.2, 1e-6);
  EXPECT_EQ(all.sink_rate(), 0);
  SinkSums short_ones;
  short_ones.add({.heads = {q, q, {}}, .pieces = {2, 3}}, at::ones({1, 5}));
  EXPECT_TRUE(std::isnan(short_ones.first(0, 3)));
  EXPECT_NEAR(short_ones.first(0, 2), 1 / 3.0, 1e-6);
}

// More rows than are held at once: the same means.
TEST(AttentionSinks, DoNotDependOnTheRowsAtATime) {
  const at::Tensor q = testing::randn({1, 2100, 1, 4}, 1).to(at::kFloat),
                   k = testing::randn({1, 2100, 1, 4}, 2).to(at::kFloat);
  SinkSums sums;
  sums.add({.heads = {q, k, {}}, .window = 700}, at::arange(2100, at::kFloat).reshape({1, 2100}));
  const at::Tensor scores = at::mm(q[0].select(1, 0), k[0].select(1, 0).t()) / 2;
  const at::Tensor apart = at::arange(2100).unsqueeze(1) - at::arange(2100);
  const at::Tensor hidden = apart.lt(0).logical_or(apart.ge(700));
  const at::Tensor weights = at::softmax(scores.to(at::kDouble).masked_fill(hidden, -1e300), -1);
  EXPECT_NEAR(sums.first(0, 1), weights.select(1, 1).sum().item<double>() / 700, 1e-6);
  EXPECT_NEAR(sums.largest(0), weights[2099][2099].item<double>(), 1e-6);  // the last, which itself alone sees
}

TEST(Look, SeesWhereAttentionGoes) {
  const Case of("siamese");
  Look look(*of.model);
  look.add(GivenBatch(*of.model, of.samples.batch(0, 1)), 12, 0);
  look.add(GivenBatch(*of.model, of.samples.batch(1, 3)), 36, 1);
  runs::AnalysisRecord record;
  look.fill(record);
  const auto tensors = look.tensors();
  const auto found = [&](const std::string& name) {
    for (const models::NamedTensor& tensor : tensors) {
      if (tensor.name == name) return tensor.value;
    }
    throw std::runtime_error("no " + name);
  };
  const at::Tensor first = found("attention/first"), largest = found("attention/largest");
  ASSERT_EQ(first.sizes(), (at::IntArrayRef{3, 4, kFirstPositions}));
  EXPECT_NEAR(record.places[2].branch->sink_first, first[1].select(1, 0).mean().item<double>(), 1e-6);
  EXPECT_NEAR(record.places[4].branch->sink_largest, largest[2].mean().item<double>(), 1e-6);
  EXPECT_GE(record.places[0].branch->sink_rate, 0);
  EXPECT_TRUE(std::isnan(record.places[1].branch->sink_first));  // of a feed-forward
}

}  // namespace sinks
}  // namespace
}  // namespace siamese::eval
