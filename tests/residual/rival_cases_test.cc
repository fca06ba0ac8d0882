// What lambda, denseformer, orthogonal, mv_split and the variants of mhc are at certain values of their parameters, and
// what always holds of them.
#include "tests/residual/harness.h"
#include "tests/support/errors.h"

namespace siamese::residual {
namespace rival_cases {

constexpr int64_t kBlocks = 4;
constexpr int64_t kWidth = 8;
constexpr double kClearly = 1e-2;

at::Tensor embedding() { return randn({2, 5, kWidth}, 3) * 1.3; }

Toy fresh(const std::string& scheme, const nn::NormSpec& spec = {}) {
  return Toy(scheme, kBlocks, kWidth, spec, /*modulated=*/false, /*fresh=*/true);
}

double difference(const at::Tensor& a, const at::Tensor& b) { return testing::largest_difference(a, b); }

void set(const Toy& toy, const std::string& name, double value) {
  const c10::NoGradGuard no_grad;
  toy.parameter(name).fill_(value);
}

void set_scales(const Toy& toy, double r, double m) {
  for (size_t i = 0; i < toy.depth(); i += 2) {
    set(toy, "site" + std::to_string(i) + ".scale", r);
    set(toy, "site" + std::to_string(i) + ".x0_scale", m);
  }
}

void randomise(const Toy& toy, const std::string& ending, uint64_t seed, double scale = 1) {
  const c10::NoGradGuard no_grad;
  for (const auto& parameter : toy.parameters.list()) {
    if (!parameter.name.ends_with(ending)) continue;
    parameter.value.copy_((scale * randn(parameter.value.sizes(), ++seed)).to(parameter.value.scalar_type()));
  }
}

TEST(RivalCases, LambdaIsPreNormWithoutItsTerms) {
  const Toy lambda = fresh("lambda(backout=none, embed_norm=false)");
  set_scales(lambda, 1, 0);
  const at::Tensor wanted = fresh("pre").run(embedding());
  EXPECT_LT(difference(lambda.run(embedding()), wanted), 1e-13);
  // A constant factor is not lost in the norms: what is added is not scaled with it.
  set_scales(lambda, 1.3, 0);
  EXPECT_GT(difference(lambda.run(embedding()), wanted), kClearly);
}

TEST(RivalCases, LambdaIsEmbedNormAtOneZeroAndZero) {
  const Toy lambda = fresh("lambda");
  set_scales(lambda, 1, 0);
  set(lambda, "close.backout", 0);
  EXPECT_LT(difference(lambda.run(embedding()), fresh("embed").run(embedding())), 1e-13);
}

TEST(RivalCases, OfLambdasFirstBlockOnlyTheSumCounts) {
  const Toy lambda = fresh("lambda");
  const auto with = [&](double r, double m) {
    set(lambda, "site0.scale", r);
    set(lambda, "site0.x0_scale", m);
    return lambda.run(embedding());
  };
  const at::Tensor wanted = with(0.7, 0.5);
  EXPECT_LT(difference(with(1.0, 0.2), wanted), 1e-13);
  EXPECT_GT(difference(with(1.0, 0.5), wanted), 1e-4);
}

TEST(RivalCases, DenseFormerStartsAsPreNorm) {
  const Toy pre = fresh("pre");
  const at::Tensor e = testing::leaf(embedding());
  const at::Tensor wanted = pre.run(e);
  for (const char* const scheme : {"denseformer", "denseformer(dilation=2)", "denseformer(dilation=3, period=2)"}) {
    testing::expect_same_bits(fresh(scheme).run(e), wanted, scheme);
  }
  for (const auto& [scheme, mixes] : {std::pair{"denseformer(period=5)", 0}, std::pair{"denseformer(dilation=5)", 4}}) {
    const Toy toy = fresh(scheme);
    testing::expect_same_bits(toy.run(e), wanted, scheme);
    EXPECT_EQ(static_cast<int>(toy.parameters.list().size()), static_cast<int>(pre.parameters.list().size()) + mixes);
  }
}

// What one write makes of h and a branch.
at::Tensor written(const Toy& toy, const at::Tensor& h, const at::Tensor& branch) {
  const ReadResult read = toy.junctions[0]->read(Streams{{{"h", h}}, {}, {}}, nullptr);
  return flush(toy.junctions[0]->write(read.streams, {branch, {}}))[0];
}

TEST(RivalCases, OrthogonalAddsNothingAlongTheStream) {
  const at::Tensor h = embedding();
  const at::Tensor o = randn({2, 5, kWidth}, 4);
  const at::Tensor next = written(fresh("orthogonal"), h, o);
  const at::Tensor added = next - h;
  EXPECT_LT(testing::largest((added * h).sum(-1)), 1e-5);  // eps / (h.h) of h.o
  testing::expect_relative(next.pow(2).sum(-1), h.pow(2).sum(-1) + added.pow(2).sum(-1), 1e-6, "lengths");
  EXPECT_LT(difference(written(fresh("orthogonal"), h, 0.5 * h), h), 1e-6);
  EXPECT_GT(testing::largest(added), 0.5);
  // Of a sample the dot products are one number: no token has to be orthogonal by itself.
  const at::Tensor whole = written(fresh("orthogonal(over=sample)"), h, o) - h;
  EXPECT_LT(testing::largest((whole * h).sum(-1).sum(-1)), 1e-5);
  EXPECT_GT(testing::largest((whole * h).sum(-1)), 0.1);
  const at::Tensor one = h.narrow(1, 0, 1), other = o.narrow(1, 0, 1);
  EXPECT_LT(difference(written(fresh("orthogonal(over=sample)"), one, other), written(fresh("orthogonal"), one, other)),
            1e-14);
}

TEST(RivalCases, MvSplitMovesTheMeanByAlphaAlone) {
  const at::Tensor h = embedding();
  const at::Tensor u = randn({2, 5, kWidth}, 4);
  const Toy toy("mv_split(norm=pre)", kBlocks, kWidth, {});
  const at::Tensor& alpha = toy.own(0, "alpha");
  const at::Tensor z = written(toy, h, u);
  testing::expect_relative(z.mean(1), (1 - alpha) * h.mean(1) + alpha * u.mean(1), 1e-13, "mean");
  EXPECT_GT(difference(z, h), kClearly);
  // One token is its own mean.
  const at::Tensor one = h.narrow(1, 0, 1), branch = u.narrow(1, 0, 1);
  const at::Tensor before = written(toy, one, branch);
  set(toy, "site0.beta", 7);
  EXPECT_LT(difference(written(toy, one, branch), before), 1e-14);
  set(toy, "site0.alpha", 1);
  set(toy, "site0.beta", 1);
  EXPECT_LT(difference(written(toy, h, u), h - h.mean(1, true) + u), 1e-13);
}

// Streams that are written alike stay equal, and any matrix whose rows add up to 1 keeps them so.
TEST(RivalCases, MhcWithoutDynamicsIsPreNormUpToEps) {
  const nn::NormSpec spec{.eps = 1e-12};
  const at::Tensor wanted = fresh("pre", spec).run(embedding());
  for (const char* const scheme : {"mhc", "mhc(res=identity)", "mhc(res=permutations)", "mhc(streams=2, res=identity)",
                                   "mhc(streams=3, res=permutations)", "mhc(streams=1, res=permutations)"}) {
    const Toy toy = fresh(scheme, spec);
    randomise(toy, "pre_bias", 40);
    randomise(toy, "res_bias", 60);
    EXPECT_LT(difference(toy.run(embedding()), wanted), 1e-9) << scheme;
    randomise(toy, "post_bias", 80);
    EXPECT_GT(difference(toy.run(embedding()), wanted), kClearly) << scheme;
  }
}

TEST(RivalCases, OneStreamHasOnePermutation) {
  const Toy identity("mhc(streams=1, res=identity)", kBlocks, kWidth, {});
  const Toy permutations("mhc(streams=1, res=permutations)", kBlocks, kWidth, {});
  const c10::NoGradGuard no_grad;
  for (const auto& parameter : identity.parameters.list()) {
    const at::Tensor& same = permutations.parameter(parameter.name);
    if (same.sizes() == parameter.value.sizes()) {
      same.copy_(parameter.value);
    } else {  // one row, and one scale, more
      same.narrow(0, 0, parameter.value.size(0)).copy_(parameter.value);
    }
  }
  EXPECT_LT(difference(identity.run(embedding()), permutations.run(embedding())), 1e-14);
}

// Logits and states of 1e4, forward and backward.
TEST(RivalCases, StayFiniteForLargeInputs) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    for (const char* const scheme :
         {"mhc", "mhc(res=permutations)", "mhc(streams=2, res=permutations)", "mhc(res=identity)", "lambda",
          "denseformer", "orthogonal", "orthogonal(over=sample)", "mv_split", "mv_split(norm=pre)"}) {
      const Toy toy(scheme, kBlocks, kWidth, {}, /*modulated=*/false, /*fresh=*/true, dtype);
      for (const char* const large : {"bias", "mix.weight"}) randomise(toy, large, 90, 1e4);
      const at::Tensor e = testing::leaf((1e4 * embedding()).to(dtype));
      const at::Tensor out = toy.run(e);
      const std::string what = std::string(scheme) + " " + c10::toString(dtype);
      EXPECT_TRUE(out.isfinite().all().item<bool>()) << what;
      for (const auto& gradient : testing::gradients(out, toy.leaves(e))) {
        EXPECT_TRUE(gradient.defined() && gradient.isfinite().all().item<bool>()) << what;
      }
    }
  }
}

TEST(RivalCases, CausalModelsRefuseWhatLooksAcrossTokens) {
  const auto make = [](const std::string& scheme, bool causal) {
    const nn::Parameters parameters(1);
    const Build build{.width = 4, .blocks = 2, .norm = {}, .causal = causal};
    return make_topology(scheme, nn::Scope(parameters), build)->mixes_tokens();
  };
  for (const char* const scheme : {"orthogonal(over=sample)", "mv_split", "mv_split(norm=pre)"}) {
    EXPECT_TRUE(make(scheme, false)) << scheme;
    testing::expect_error<UsageError>([&] { make(scheme, true); }, {scheme, "all tokens of a sample", "causal"});
  }
  for (const char* const scheme : {"orthogonal", "pre", "lambda", "denseformer", "mhc"}) {
    EXPECT_FALSE(make(scheme, true)) << scheme;
  }
}

}  // namespace rival_cases
}  // namespace siamese::residual
