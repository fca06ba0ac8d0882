// attn_res against its equations, written out by hand in double precision, and what it becomes at special parameters.
#include "siamese/residual/attn_res.h"

#include <map>

#include "tests/residual/harness.h"
#include "tests/support/errors.h"

namespace siamese::residual {
namespace {

std::string site(size_t i) { return "site" + std::to_string(i); }

// A read of the sources with the query and the key gain of `place`, before the norm of the sum.
at::Tensor attend(const Toy& toy, const std::string& place, const std::vector<at::Tensor>& sources) {
  const at::Tensor& w = toy.parameter(place + ".query");
  const at::Tensor& g = toy.parameter(place + ".key_norm.weight");
  const double d = static_cast<double>(toy.width);
  at::Tensor numerator, denominator;
  for (const at::Tensor& v : sources) {
    const at::Tensor key = g * v / ((v * v).sum(-1, true) / d + toy.norm.eps).sqrt();  // RMSNorm, whatever the model's
    const at::Tensor e = (w * key).sum(-1, true).exp();
    numerator = numerator.defined() ? numerator + e * v : e * v;
    denominator = denominator.defined() ? denominator + e : e;
  }
  return numerator / denominator;
}

using Gated = std::function<at::Tensor(const at::Tensor&)>;
at::Tensor as_it_is(const at::Tensor& branch) { return branch; }

// The last read, before LN_final.
at::Tensor full(const Toy& toy, const at::Tensor& e, const Gated& gated = as_it_is) {
  std::vector<at::Tensor> v = {e};
  for (size_t i = 0; i < toy.depth(); ++i) {
    const at::Tensor h = i == 0 ? e : attend(toy, site(i), v);
    v.push_back(gated(toy.sublayer(i, toy.at_site(i, "norm", h))));
  }
  return attend(toy, "close", v);
}

at::Tensor blocks_of_sites(size_t size, const Toy& toy, const at::Tensor& e, const Gated& gated = as_it_is) {
  std::vector<at::Tensor> b = {e};
  at::Tensor p;
  for (size_t i = 0; i < toy.depth(); ++i) {
    if (i > 0 && i % size == 0) {
      b.push_back(p);
      p = at::Tensor();
    }
    std::vector<at::Tensor> sources = b;
    if (p.defined()) sources.push_back(p);
    const at::Tensor h = i == 0 ? e : attend(toy, site(i), sources);
    const at::Tensor o = gated(toy.sublayer(i, toy.at_site(i, "norm", h)));
    p = p.defined() ? p + o : o;
  }
  b.push_back(p);
  return attend(toy, "close", b);
}

// As the option counts: Transformer blocks.
at::Tensor blocks_of(size_t size, const Toy& toy, const at::Tensor& e, const Gated& gated = as_it_is) {
  return blocks_of_sites(2 * size, toy, e, gated);
}

TEST(AttnRes, FullForm) {
  expect_equation("attn_res",
                  [](const Toy& toy, const at::Tensor& e) { return toy.normed("close.norm", full(toy, e)); });
}

// Of three blocks and of four: neither 2 nor 3 divides both.
TEST(AttnRes, BlockForm) {
  for (const size_t size : {1U, 2U, 3U, 4U, 9U}) {
    expect_equation("attn_res(block=" + std::to_string(size) + ")", [&](const Toy& toy, const at::Tensor& e) {
      return toy.normed("close.norm", blocks_of(size, toy, e));
    });
  }
}

// The option cannot say this, since it counts blocks of two sites; the equation can.
TEST(AttnRes, ABlockOfOneSiteIsTheFullForm) {
  expect_equation("attn_res", [](const Toy& toy, const at::Tensor& e) {
    return toy.normed("close.norm", blocks_of_sites(1, toy, e));
  });
}

// A gate multiplies the branch, where it begins a source and where it is added to one; in a modulated family the norm
// of a branch input has no gain, and the last read no norm.
TEST(AttnRes, GatesAndModulatedFamilies) {
  for (const size_t size : {0U, 1U, 2U}) {
    const std::string scheme = "attn_res(block=" + std::to_string(size) + ")";
    for (const at::Tensor& gate : {randn({2, 1, 6}, 31), randn({2, 1, 1}, 32)}) {
      const Toy toy(scheme, 3, 6, {}, /*modulated=*/true);
      EXPECT_EQ(toy.parameters.find("site3.norm.weight"), nullptr);
      EXPECT_EQ(toy.parameters.find("close.norm.weight"), nullptr);
      EXPECT_NE(toy.parameters.find("close.key_norm.weight"), nullptr);
      const at::Tensor e = testing::leaf(randn({2, 5, 6}, 3));
      const Gated gated = [&](const at::Tensor& branch) { return gate * branch; };
      const at::Tensor got = toy.run(e, nullptr, gate);
      const at::Tensor wanted = size == 0 ? full(toy, e, gated) : blocks_of(size, toy, e, gated);
      testing::expect_relative(got, wanted, 1e-12, scheme);
      const auto got_gradients = testing::gradients(got, toy.leaves(e));
      const auto wanted_gradients = testing::gradients(wanted, toy.leaves(e));
      for (size_t i = 0; i < got_gradients.size(); ++i) {
        testing::expect_relative(got_gradients[i], wanted_gradients[i], 1e-11, scheme + " leaf " + std::to_string(i));
      }
    }
  }
}

TEST(AttnRes, StartsWithQueriesOfZeroAndHasNoneAtTheFirstSite) {
  const Toy toy("attn_res", 2, 6, {.kind = nn::NormKind::layer, .bias = true}, false, /*fresh=*/true);
  EXPECT_EQ(toy.parameters.find("site0.query"), nullptr);
  EXPECT_EQ(toy.parameters.find("site0.key_norm.weight"), nullptr);
  EXPECT_EQ(toy.parameters.find("site1.key_norm.bias"), nullptr);  // an RMSNorm's
  for (const std::string place : {"site1", "site2", "site3", "close"}) {
    EXPECT_EQ(toy.parameters.find(place + ".query")->kind, nn::ParameterKind::scalar);
    EXPECT_EQ(toy.parameters.find(place + ".key_norm.weight")->kind, nn::ParameterKind::norm);
    EXPECT_EQ(testing::largest(toy.parameter(place + ".query")), 0);
    EXPECT_EQ(testing::largest(toy.parameter(place + ".key_norm.weight") - 1), 0);
  }
}

// The mean of the sources is their sum but for a factor, which a norm takes out again.
TEST(AttnRes, QueriesOfZeroArePreNormUpToEps) {
  for (const std::string scheme : {"attn_res", "attn_res(block=1)", "attn_res(block=3)", "attn_res(block=9)"}) {
    for (const auto& spec : {nn::NormSpec{.eps = 1e-14}, {.kind = nn::NormKind::layer, .eps = 1e-14, .bias = true}}) {
      const Toy toy(scheme, 4, 11, spec);
      const Toy pre("pre", 4, 11, spec);
      for (size_t i = 0; i < pre.depth(); ++i) pre.copy_norm(site(i) + ".norm", toy, site(i) + ".norm");
      pre.copy_norm("close.norm", toy, "close.norm");
      const at::Tensor e = randn({2, 5, 11}, 3);
      EXPECT_GT(testing::largest_difference(toy.run(e), pre.run(e)), 1e-2) << scheme;
      {
        const c10::NoGradGuard no_grad;
        for (const auto& parameter : toy.parameters.list()) {
          if (parameter.name.ends_with("query")) parameter.value.zero_();
        }
      }
      testing::expect_relative(toy.run(e), pre.run(e), 1e-11, scheme);
    }
  }
}

// E and the running sum of all branches.
TEST(AttnRes, ABlockLongerThanTheModelIsTheWholeModel) {
  const Toy exact("attn_res(block=4)", 4, 6, {});
  const Toy longer("attn_res(block=100)", 4, 6, {});
  const at::Tensor e = randn({2, 5, 6}, 3);
  testing::expect_same_bits(longer.run(e), exact.run(e), "block=100");
}

// Which streams there are before each read and at the close.
TEST(AttnRes, StreamsByPlace) {
  using Names = std::vector<std::string>;
  const std::map<std::string, std::vector<Names>> wanted = {
      {"attn_res",
       {{"v0"}, {"v0", "v1"}, {"v0", "v1", "v2"}, {"v0", "v1", "v2", "v3"}, {"v0", "v1", "v2", "v3", "v4"}}},
      {"attn_res(block=1)", {{"b0"}, {"b0", "p"}, {"b0", "p"}, {"b0", "b1", "p"}, {"b0", "b1", "p"}}},
      {"attn_res(block=2)", {{"b0"}, {"b0", "p"}, {"b0", "p"}, {"b0", "p"}, {"b0", "p"}}},
  };
  for (const auto& [scheme, names] : wanted) {
    const Toy toy(scheme, 2, 6, {});
    Streams streams = toy.topology->open(randn({1, 2, 6}, 3));
    for (size_t i = 0; i <= toy.depth(); ++i) {
      EXPECT_EQ(flatten(streams).layout.names, names[i]) << scheme << " place " << i;
      if (i < toy.depth()) streams = toy.run_sites(streams, i, i + 1);
    }
  }
}

class Seen : public Recorder {
 public:
  void stream(const Site& at, const std::string& name, const at::Tensor& before, const at::Tensor& after) override {
    EXPECT_FALSE(after.defined());
    streams[std::to_string(at.index) + " " + name] = before;
  }
  void branch(const Site& at, const at::Tensor&, const at::Tensor& output) override {
    branches[static_cast<size_t>(at.index)] = output;
  }
  std::map<std::string, at::Tensor> streams;
  std::map<size_t, at::Tensor> branches;
};

TEST(AttnRes, TheRecorderSeesTheSourcesAsTheyAreRead) {
  const Toy toy("attn_res(block=1)", 2, 6, {});
  const at::Tensor e = randn({1, 2, 6}, 3);
  Seen seen;
  toy.run(e, &seen);
  EXPECT_EQ(seen.streams.size(), 1U + 2 + 2 + 3);
  testing::expect_same_bits(seen.streams.at("3 b0"), e, "b0");
  testing::expect_same_bits(seen.streams.at("1 p"), seen.branches[0], "p of one branch");
  testing::expect_same_bits(seen.streams.at("2 b1"), seen.branches[0] + seen.branches[1], "a full p is b1");
  testing::expect_same_bits(seen.streams.at("3 p"), seen.branches[2], "p");
}

// Streams of 1e4 and queries of 1e4: scores of 1e4 and more, one source has all the weight.
TEST(AttnRes, LargeStreamsStayFinite) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    for (const std::string scheme : {"attn_res", "attn_res(block=1)"}) {
      for (const double query_scale : {1.0, 1e4}) {
        const Toy toy(scheme, 3, 6, {}, false, false, dtype);
        {
          const c10::NoGradGuard no_grad;
          for (const auto& parameter : toy.parameters.list()) {
            if (parameter.name.ends_with("query")) parameter.value.mul_(query_scale);
          }
        }
        const at::Tensor e = testing::leaf((1e4 * randn({2, 5, 6}, 3)).to(dtype));
        const at::Tensor y = toy.run(e);
        EXPECT_TRUE(y.isfinite().all().item<bool>()) << scheme;
        for (const auto& gradient : testing::gradients(y, toy.leaves(e))) {
          EXPECT_TRUE(gradient.isfinite().all().item<bool>()) << scheme << " " << dtype;
        }
      }
    }
  }
}

TEST(AttnRes, ABlockIsNotNegative) {
  testing::expect_error<UsageError>([] { canonical_scheme("attn_res(block=-1)"); }, {"attn_res.block", "got -1"});
  EXPECT_EQ(canonical_scheme("attn_res( block = 0 )"), "attn_res");
}

}  // namespace
}  // namespace siamese::residual
