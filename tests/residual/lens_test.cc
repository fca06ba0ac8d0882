// The lens at every place, and the weights of a read, against the equation of the close and of the read.
#include "tests/residual/harness.h"
#include "tests/support/schemes.h"
#include "tests/support/tensors.h"

namespace siamese::residual {
namespace {
namespace lenses {

const nn::NormSpec kLayer{.kind = nn::NormKind::layer, .eps = 1e-6, .bias = true};
constexpr int64_t kWidth = 7;

// The streams before the read of every site, and before the close; the last branch still pending.
std::vector<Streams> places(const Toy& toy) {
  std::vector<Streams> all = {toy.topology->open(randn({2, 5, kWidth}, 3) * 1.7)};
  for (size_t i = 0; i < toy.depth(); ++i) all.push_back(toy.run_sites(all.back(), i, i + 1));
  return all;
}

void expect_close_to(const at::Tensor& got, const at::Tensor& wanted, const std::string& what) {
  testing::expect_relative(got, wanted, 1e-12, what);
}

TEST(Lens, AtTheEndIsTheCloseAndEverywhereDefined) {
  for (const std::string& scheme : testing::all_schemes()) {
    const Toy toy(scheme, 3, kWidth, kLayer);
    const std::vector<Streams> all = places(toy);
    for (size_t i = 0; i < all.size(); ++i) {
      EXPECT_TRUE(toy.topology->lens(all[i]).defined()) << scheme << " at " << i;
      EXPECT_TRUE(toy.topology->lens(all[i], 0).defined()) << scheme << " at " << i;
    }
    expect_close_to(toy.topology->lens(all.back()), toy.topology->close(all.back()), scheme);
  }
}

TEST(Lens, OfOneStreamIsItsTermThroughTheFinalNorm) {
  for (const char* const scheme : {"siamese", "siamese(x=hybrid)"}) {
    const Toy toy(scheme, 3, kWidth, kLayer);
    for (const Streams& streams : places(toy)) {
      const Streams now = flush(streams);
      const auto whole = [&](const at::Tensor& sum) { return toy.normed("close.norm", sum); };
      const at::Tensor x = toy.normed("close.x_norm", now[0]), y = toy.normed("close.y_norm", now[1]);
      expect_close_to(toy.topology->lens(streams, 0), whole(x), "X");
      expect_close_to(toy.topology->lens(streams, 1), whole(y), "Y");
      expect_close_to(toy.topology->lens(streams), whole(x + y), "both");
    }
  }
}

TEST(Lens, OfOtherSchemes) {
  const Toy dual("resi_dual(x_weight=0.5)", 2, kWidth, kLayer);
  for (const Streams& streams : places(dual)) {
    const Streams now = flush(streams);
    expect_close_to(dual.topology->lens(streams, 0), 0.5 * now[0], "x");
    expect_close_to(dual.topology->lens(streams, 1), dual.normed("close.r_norm", now[1]), "r");
  }
  for (const char* const scheme : {"hc(streams=3)", "attn_res", "attn_res(block=1)"}) {
    const Toy toy(scheme, 2, kWidth, kLayer);
    for (const Streams& streams : places(toy)) {
      const Streams now = flush(streams);
      for (size_t k = 0; k < now.list.size(); ++k) {
        expect_close_to(toy.topology->lens(streams, k), toy.normed("close.norm", now[k]), scheme);
      }
    }
  }
  const Toy back("lambda(backout=0.5)", 4, kWidth, kLayer);
  size_t marked = 0;
  for (const Streams& streams : places(back)) {
    const Streams now = flush(streams);
    expect_close_to(back.topology->lens(streams, 0), back.normed("close.norm", now[0]), "h");
    EXPECT_FALSE(back.topology->lens(streams, 1).defined());  // e is no part of the output
    if (now.list.size() < 3) continue;
    ++marked;
    const at::Tensor term = -back.parameter("close.backout") * now[2];
    expect_close_to(back.topology->lens(streams, 2), back.normed("close.norm", term), "c");
    expect_close_to(back.topology->lens(streams), back.normed("close.norm", now[0] + term), "all");
  }
  EXPECT_GT(marked, 0U);
  for (const char* const scheme : {"span", "denseformer"}) {  // what it carries beside h does not reach the output
    const Toy toy(scheme, 2, kWidth, kLayer);
    size_t beside = 0;
    for (const Streams& streams : places(toy)) {
      const Streams now = flush(streams);
      const at::Tensor h = scheme == std::string("span") ? now[0] : toy.normed("close.norm", now[0]);
      expect_close_to(toy.topology->lens(streams), h, scheme);
      for (size_t k = 1; k < now.list.size(); ++k, ++beside) EXPECT_FALSE(toy.topology->lens(streams, k).defined());
    }
    EXPECT_GT(beside, 0U) << scheme;
  }
}

// What a read gives, and what a write of nothing leaves, follows from the weights that it says.
TEST(StreamWeights, AreThoseOfTheRead) {
  for (const char* const scheme : {"hc(streams=3)", "hc(streams=2, dynamic=false)", "mhc(streams=3)",
                                   "mhc(streams=3, res=permutations)", "attn_res", "attn_res(block=1)"}) {
    const Toy toy(scheme, 2, kWidth, kLayer);
    const std::vector<Streams> all = places(toy);
    for (size_t i = 0; i < toy.depth(); ++i) {
      const StreamWeights weights = toy.junctions[i]->weights(all[i]);
      const Streams now = flush(all[i]);
      std::vector<at::Tensor> values;
      for (const Stream& stream : now.list) values.push_back(stream.value);
      const at::Tensor stacked = at::stack(values, -2);  // [..., n, width]
      const at::Tensor sum = (weights.input.unsqueeze(-1) * stacked).sum(-2);
      const ReadResult read = toy.junctions[i]->read(all[i], nullptr);
      const std::string what = std::string(scheme) + " site " + std::to_string(i);
      expect_close_to(read.branch_input, toy.at_site(i, "norm", sum), what);
      EXPECT_EQ(weights.mix.defined(), !std::string(scheme).starts_with("attn_res"));
      if (!weights.mix.defined()) continue;
      const Streams after = flush(toy.junctions[i]->write(read.streams, {at::zeros_like(sum), {}}));
      const at::Tensor mixed = at::matmul(weights.mix, stacked);
      for (size_t k = 0; k < after.list.size(); ++k) {
        expect_close_to(after[k], mixed.select(-2, static_cast<int64_t>(k)), what + " mixed");
      }
    }
  }
  EXPECT_FALSE(Toy("siamese", 1, kWidth, kLayer).junctions[0]->weights({}).input.defined());
}

TEST(StreamWeights, AreThoseOfTheClose) {
  for (const char* const scheme : {"attn_res", "attn_res(block=1)"}) {
    const Toy toy(scheme, 2, kWidth, kLayer);
    const Streams last = places(toy).back();
    const at::Tensor weights = toy.topology->weights(last).input;
    std::vector<at::Tensor> values;
    for (const Stream& stream : flush(last).list) values.push_back(stream.value);
    EXPECT_GT(testing::largest(weights - weights.mean(-1, true)), 1e-3) << scheme;  // not all alike
    const at::Tensor sum = (weights.unsqueeze(-1) * at::stack(values, -2)).sum(-2);
    expect_close_to(toy.topology->close(last), toy.normed("close.norm", sum), scheme);
  }
  EXPECT_FALSE(Toy("siamese", 1, kWidth, kLayer).topology->weights({}).input.defined());
}

TEST(Streams, AloneAndWithout) {
  const Streams streams{{{"a", randn({2, 3}, 1)}, {"b", randn({2, 3}, 2)}}, {}, {}};
  testing::expect_same_bits(alone(streams, 1)[1], streams[1], "kept");
  EXPECT_EQ(testing::largest(alone(streams, 1)[0]), 0);
  testing::expect_same_bits(without(streams, 1)[0], streams[0], "kept");
  EXPECT_EQ(testing::largest(without(streams, 1)[1]), 0);
  EXPECT_THROW(alone(streams, 2), UsageError);
  EXPECT_THROW(without(streams.deferring({{randn({2, 3}, 3), {}}, {1.0, 1.0}}), 0), UsageError);
}

}  // namespace lenses
}  // namespace
}  // namespace siamese::residual
