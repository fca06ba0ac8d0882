#include "siamese/eval/value_sums.h"

#include <cmath>

#include "tests/support/tensors.h"

#include "siamese/eval/state_rows.h"

namespace siamese::eval {
namespace {

TEST(ValueSums, OfPiecesAreThoseOfTheWhole) {
  const at::Tensor values = testing::randn({5, 7, 33}, 1).pow(3) + 0.4;
  ValueSums sums;
  for (const at::Tensor& piece : values.to(at::kFloat).split(2)) sums.add(piece);
  const runs::ValueStatistics got = sums.statistics();
  const at::Tensor x = values.to(at::kFloat).to(at::kDouble), centred = x - x.mean();
  EXPECT_NEAR(got.norm, x.norm(2, -1).mean().item<double>(), 1e-9);
  EXPECT_NEAR(got.rms, x.square().mean().sqrt().item<double>(), 1e-9);
  EXPECT_EQ(got.max, testing::largest(x));
  const double kurtosis = (centred.pow(4).mean() / centred.square().mean().square()).item<double>();
  EXPECT_GT(kurtosis, 5);
  EXPECT_NEAR(got.kurtosis, kurtosis, 1e-8);
  CosineSums cosines;
  const at::Tensor other = testing::randn({5, 7, 33}, 2).to(at::kFloat);
  cosines.add(x, other);
  const at::Tensor expected = (x * other).sum(-1) / (x.norm(2, -1) * other.to(at::kDouble).norm(2, -1));
  EXPECT_NEAR(cosines.mean(), expected.mean().item<double>(), 1e-12);
  TokenMeanSums means;
  means.add(x.narrow(0, 0, 2));
  means.add(x.narrow(0, 2, 3));
  const at::Tensor share = x.mean(1).square().sum(-1) / x.square().sum(-1).mean(1);
  EXPECT_NEAR(means.mean(), share.mean().item<double>(), 1e-12);
  EXPECT_TRUE(std::isnan(ValueSums().statistics().rms));
}

TEST(StateRows, AgainstGramMatricesAndSingularValues) {
  StateRows rows(3);
  std::vector<at::Tensor> all;
  for (uint64_t place = 0; place < 3; ++place) {
    const at::Tensor states = (testing::randn({17, 6}, place) + 0.3 * testing::randn({17, 6}, 0)).to(at::kFloat);
    rows.add(place, states.narrow(0, 0, 9));
    rows.add(place, states.narrow(0, 9, 8));
    all.push_back(states.to(at::kDouble));
  }
  const at::Tensor cka = rows.cka(), cosines = rows.cosines();
  for (int64_t i = 0; i < 3; ++i) {
    const at::Tensor x = all[static_cast<size_t>(i)];
    const at::Tensor singular = at::linalg_svdvals(x - x.mean(0, true));
    const at::Tensor q = singular / singular.sum(), p = singular.square() / singular.square().sum();
    const Spectrum spectrum = rows.spectrum(static_cast<size_t>(i));
    EXPECT_NEAR(spectrum.rank, (q * q.log()).sum().neg().exp().item<double>(), 1e-5);
    EXPECT_NEAR(spectrum.entropy, (p * p.log()).sum().neg().item<double>(), 1e-5);
    for (int64_t j = 0; j < 3; ++j) {
      const at::Tensor y = all[static_cast<size_t>(j)];
      // HSIC by the n x n matrices of both.
      const at::Tensor centre = at::eye(17, at::kDouble) - 1.0 / 17;
      const at::Tensor k = centre.mm(x.mm(x.t())).mm(centre), l = centre.mm(y.mm(y.t())).mm(centre);
      const double expected = ((k * l).sum() / (k.norm() * l.norm())).item<double>();
      EXPECT_NEAR(cka[i][j].item<double>(), expected, 1e-5);
      const at::Tensor cosine = (x * y).sum(1) / (x.norm(2, 1) * y.norm(2, 1));
      EXPECT_NEAR(cosines[i][j].item<double>(), cosine.mean().item<double>(), 1e-5);
    }
  }
  StateRows wide(1);  // fewer rows than columns
  wide.add(0, testing::randn({4, 9}, 5));
  const at::Tensor x = testing::randn({4, 9}, 5).to(at::kFloat).to(at::kDouble);
  const at::Tensor singular = at::linalg_svdvals(x - x.mean(0, true)).narrow(0, 0, 3);
  const at::Tensor p = singular.square() / singular.square().sum();
  EXPECT_NEAR(wide.spectrum(0).entropy, (p * p.log()).sum().neg().item<double>(), 1e-5);
}

}  // namespace
}  // namespace siamese::eval
