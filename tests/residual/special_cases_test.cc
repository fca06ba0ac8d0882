// Which schemes SiameseNorm contains when gains are set to 0 or 1, which only up to eps, and which not at all.
// A norm set to 0 has gain 0 and shift 0.
#include "tests/residual/harness.h"

namespace siamese::residual {
namespace {

const char* const kRead = "siamese(input_norm=false, depth_scale=none, final_norm=false)";
const char* const kWrite = "siamese(form=write, input_norm=false, depth_scale=none)";
constexpr int64_t kBlocks = 4;
constexpr int64_t kWidth = 16;
constexpr double kExact = 1e-12;
constexpr double kUpToEps = 1e-9;  // with eps 1e-12
constexpr double kClearly = 1e-2;

std::string site(size_t i, const std::string& norm) { return "site" + std::to_string(i) + "." + norm; }

Toy toy(const std::string& scheme, const nn::NormSpec& spec) { return Toy(scheme, kBlocks, kWidth, spec); }

at::Tensor embedding() { return randn({2, 3, kWidth}, 3) * 1.3; }

double difference(const at::Tensor& a, const at::Tensor& b) { return (a - b).abs().max().item<double>(); }

// Both kinds of norm, with the eps of a real model and with one that vanishes.
std::vector<nn::NormSpec> specs(double eps) {
  return {{.kind = nn::NormKind::rms, .eps = eps}, {.kind = nn::NormKind::layer, .eps = eps, .bias = true}};
}

void set_all(const Toy& model, const std::string& norm, double gain, size_t first = 0, size_t last = 2 * kBlocks) {
  for (size_t i = first; i < last; ++i) model.set_norm(site(i, norm), gain);
}

TEST(SpecialCases, PreNormFromTheReadFormWithXGainsZero) {
  for (const auto& spec : specs(1e-5)) {
    const Toy siamese = toy(kRead, spec);
    const Toy pre = toy("pre", spec);
    set_all(siamese, "x_norm", 0);
    siamese.set_norm("close.x_norm", 0);
    for (size_t i = 0; i < pre.depth(); ++i) pre.copy_norm(site(i, "norm"), siamese, site(i, "y_norm"));
    pre.copy_norm("close.norm", siamese, "close.y_norm");
    EXPECT_LT(difference(siamese.run(embedding()), pre.run(embedding())), kExact);
  }
}

TEST(SpecialCases, PreNormFromTheWriteFormOnlyIfX0IsZeroToo) {
  for (const auto& spec : specs(1e-5)) {
    const Toy siamese = toy(kWrite, spec);
    const Toy pre = toy("pre", spec);
    set_all(siamese, "x_norm", 0);
    for (size_t i = 0; i < pre.depth(); ++i) pre.copy_norm(site(i, "norm"), siamese, site(i, "y_norm"));
    pre.copy_norm("close.norm", siamese, "close.y_norm");
    const at::Tensor wanted = pre.run(embedding());
    EXPECT_GT(difference(siamese.run(embedding()), wanted), kClearly);
    const Streams streams = siamese.topology->open(embedding()).replaced({at::zeros_like(embedding()), embedding()});
    EXPECT_LT(difference(siamese.topology->close(siamese.run_sites(streams, 0, siamese.depth())), wanted), kExact);
  }
}

TEST(SpecialCases, PreNormWithNormalizedInputUpToEps) {
  for (const auto& spec : specs(1e-12)) {
    const Toy siamese = toy("siamese", spec);
    const Toy pre = toy("pre", spec);
    set_all(siamese, "x_norm", 0);
    siamese.set_norm("close.x_norm", 0);
    for (size_t i = 0; i < pre.depth(); ++i) pre.copy_norm(site(i, "norm"), siamese, site(i, "input_norm"));
    pre.copy_norm("close.norm", siamese, "close.norm");
    // Random gains on Y: normalising twice is not normalising once.
    EXPECT_GT(difference(siamese.run(embedding()), pre.run(embedding())), kClearly);
    set_all(siamese, "y_norm", 1);
    siamese.set_norm("close.y_norm", 1);
    EXPECT_LT(difference(siamese.run(embedding()), pre.run(embedding())), kUpToEps);
  }
  // What eps costs is of the order of eps.
  const nn::NormSpec coarse{.eps = 1e-5};
  const Toy siamese = toy("siamese", coarse);
  const Toy pre = toy("pre", coarse);
  set_all(siamese, "x_norm", 0);
  siamese.set_norm("close.x_norm", 0);
  set_all(siamese, "y_norm", 1);
  siamese.set_norm("close.y_norm", 1);
  for (size_t i = 0; i < pre.depth(); ++i) pre.copy_norm(site(i, "norm"), siamese, site(i, "input_norm"));
  pre.copy_norm("close.norm", siamese, "close.norm");
  const double cost = difference(siamese.run(embedding()), pre.run(embedding()));
  EXPECT_GT(cost, 1e-8);
  EXPECT_LT(cost, 1e-3);
}

TEST(SpecialCases, PostNormFromTheWriteForm) {
  for (const auto& spec : specs(1e-5)) {
    const Toy siamese = toy(kWrite, spec);
    const Toy post = toy("post(final_norm=false)", spec);
    set_all(siamese, "y_norm", 0);
    siamese.set_norm("close.y_norm", 0);
    for (size_t i = 0; i < post.depth(); ++i) post.copy_norm(site(i, "norm"), siamese, site(i, "x_norm"));
    EXPECT_LT(difference(siamese.run(embedding()), post.run(embedding())), kExact);
  }
}

// The norms of the read form are those of the write form one index later; the first one normalises the embedding.
void shift_x_norms(const Toy& to, const std::string& name, const Toy& read_form) {
  for (size_t i = 0; i + 1 < to.depth(); ++i) to.copy_norm(site(i, name), read_form, site(i + 1, "x_norm"));
  to.copy_norm(site(to.depth() - 1, name), read_form, "close.x_norm");
}

TEST(SpecialCases, PostNormWithEmbedNormFromTheReadForm) {
  for (const auto& spec : specs(1e-5)) {
    const Toy siamese = toy(kRead, spec);
    const Toy post = toy("post(final_norm=false)", spec);
    set_all(siamese, "y_norm", 0);
    siamese.set_norm("close.y_norm", 0);
    shift_x_norms(post, "norm", siamese);
    const at::Tensor got = siamese.run(embedding());
    EXPECT_LT(difference(got, post.run(siamese.at_site(0, "x_norm", embedding()))), kExact);
    EXPECT_GT(difference(got, post.run(embedding())), kClearly);
  }
}

TEST(SpecialCases, DepthScaleIsDeepNormWithAlphaGrowingUpToEps) {
  for (const auto& spec : specs(1e-12)) {
    const Toy siamese = toy("siamese(form=write, input_norm=false)", spec);
    set_all(siamese, "y_norm", 0);
    siamese.set_norm("close.y_norm", 0);
    at::Tensor x = embedding();
    for (size_t i = 0; i < siamese.depth(); ++i) {
      const double alpha = std::sqrt(2.0 * static_cast<double>(i / 2 + 1));
      x = siamese.at_site(i, "x_norm", alpha * x + siamese.sublayer(i, x));
    }
    EXPECT_LT(difference(siamese.run(embedding()), x), kUpToEps);
  }
}

TEST(SpecialCases, ResiDualFromTheWriteForm) {
  for (const auto& spec : specs(1e-5)) {
    const Toy siamese = toy(kWrite, spec);
    const Toy resi_dual = toy("resi_dual", spec);
    for (size_t i = 0; i < resi_dual.depth(); ++i) {
      resi_dual.copy_norm(site(i, "norm"), siamese, site(i, "x_norm"));
    }
    resi_dual.copy_norm("close.r_norm", siamese, "close.y_norm");
    EXPECT_GT(difference(siamese.run(embedding()), resi_dual.run(embedding())), kClearly);
    set_all(siamese, "y_norm", 0);
    EXPECT_LT(difference(siamese.run(embedding()), resi_dual.run(embedding())), kExact);
  }
}

TEST(SpecialCases, MixLnIsNoneButForAnExplicitHandOver) {
  for (const auto& spec : specs(1e-5)) {
    constexpr size_t kSwitch = 4;  // two of the four blocks are Post-Norm
    const Toy siamese = toy(kWrite, spec);
    const Toy mixln = toy("mixln(post=0.5)", spec);
    set_all(siamese, "y_norm", 0, 0, kSwitch);
    set_all(siamese, "x_norm", 0, kSwitch);
    for (size_t i = 0; i < mixln.depth(); ++i) {
      mixln.copy_norm(site(i, "norm"), siamese, site(i, i < kSwitch ? "x_norm" : "y_norm"));
    }
    mixln.copy_norm("close.norm", siamese, "close.y_norm");
    const at::Tensor wanted = mixln.run(embedding());
    EXPECT_GT(difference(siamese.run(embedding()), wanted), kClearly);
    const Streams half = flush(siamese.run_sites(siamese.topology->open(embedding()), 0, kSwitch));
    const Streams handed = half.replaced({at::zeros_like(half[0]), half[0]});
    EXPECT_LT(difference(siamese.topology->close(siamese.run_sites(handed, kSwitch, siamese.depth())), wanted), kExact);
  }
}

TEST(SpecialCases, PreNormFromTheHybridFormUpToEps) {
  for (const auto& spec : specs(1e-12)) {
    const Toy siamese = toy("siamese(x=hybrid)", spec);
    const Toy pre = toy("pre", spec);
    for (size_t i = 0; i < pre.depth(); i += 2) {
      const c10::NoGradGuard no_grad;
      siamese.own(i, "x_scale").zero_();
      siamese.set_norm(site(i + 1, "x_norm"), 0);
      siamese.set_norm(site(i + 1, "y_norm"), 1);
      pre.copy_norm(site(i, "norm"), siamese, site(i, "y_norm"));
      pre.copy_norm(site(i + 1, "norm"), siamese, site(i + 1, "input_norm"));
    }
    siamese.set_norm("close.x_norm", 0);
    siamese.set_norm("close.y_norm", 1);
    pre.copy_norm("close.norm", siamese, "close.norm");
    EXPECT_LT(difference(siamese.run(embedding()), pre.run(embedding())), kUpToEps);
  }
}

TEST(SpecialCases, HybridNormFromTheHybridFormWhenItsGainsAreConstant) {
  for (const auto& spec : specs(1e-12)) {
    const Toy siamese = toy("siamese(x=hybrid, depth_scale=none)", spec);
    const Toy hybrid = toy("hybrid", spec);
    constexpr double kGain = 1.7;
    const auto connect = [&](bool constant) {
      for (size_t i = 0; i < hybrid.depth(); i += 2) {
        const c10::NoGradGuard no_grad;
        siamese.own(i, "x_scale").fill_(1);
        siamese.set_norm(site(i, "y_norm"), 0);
        siamese.set_norm(site(i + 1, "y_norm"), 0);
        if (constant) siamese.set_norm(site(i + 1, "x_norm"), kGain);
        siamese.copy_norm(site(i + 1, "input_norm"), siamese, site(i + 1, "x_norm"));
        hybrid.copy_norm(site(i + 1, "norm"), siamese, site(i + 1, "x_norm"));
      }
      siamese.set_norm("close.y_norm", 0);
      if (constant) siamese.set_norm("close.x_norm", kGain);
      hybrid.copy_norm("close.norm", siamese, "close.norm");
      return difference(siamese.run(embedding()), hybrid.run(embedding()));
    };
    EXPECT_GT(connect(false), kClearly);  // the second norm sees the gains of the first
    EXPECT_LT(connect(true), kUpToEps);
  }
}

TEST(SpecialCases, ReadFormIsTheWriteFormStartedFromTheNormalisedEmbedding) {
  for (const auto& [read_text, write_text] :
       {std::pair{"siamese", "siamese(form=write, final_norm=true)"}, std::pair{kRead, kWrite}}) {
    for (const auto& spec : specs(1e-5)) {
      const Toy read = toy(read_text, spec);
      const Toy write = toy(write_text, spec);
      shift_x_norms(write, "x_norm", read);
      for (size_t i = 0; i < read.depth(); ++i) {
        write.copy_norm(site(i, "y_norm"), read, site(i, "y_norm"));
        if (read.parameters.find(site(i, "input_norm.weight")) != nullptr) {
          write.copy_norm(site(i, "input_norm"), read, site(i, "input_norm"));
        }
      }
      write.copy_norm("close.y_norm", read, "close.y_norm");
      if (read.parameters.find("close.norm.weight") != nullptr) write.copy_norm("close.norm", read, "close.norm");
      const at::Tensor wanted = read.run(embedding());
      const Streams start =
          write.topology->open(embedding()).replaced({read.at_site(0, "x_norm", embedding()), embedding()});
      EXPECT_LT(difference(write.topology->close(write.run_sites(start, 0, write.depth())), wanted), kExact);
      EXPECT_GT(difference(write.run(embedding()), wanted), kClearly);
    }
  }
}

}  // namespace
}  // namespace siamese::residual
