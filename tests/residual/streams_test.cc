#include "siamese/residual/streams.h"

#include "tests/residual/harness.h"
#include "tests/support/errors.h"
#include "tests/support/schemes.h"

#include "siamese/residual/pass.h"
#include "siamese/residual/pre.h"

namespace siamese::residual {
namespace {

Streams two_streams() { return {{{"X", randn({2, 3}, 1)}, {"Y", randn({2, 3}, 2)}}, {}, {}}; }

TEST(Streams, FlushAddsNormGateAndCoefficientInThatOrder) {
  nn::Parameters parameters(1, at::kDouble);
  const nn::Norm norm(nn::Scope(parameters).child("n"), 3, {.eps = 1e-5});
  {
    const c10::NoGradGuard no_grad;
    norm.gain().value().copy_(randn({3}, 9));
  }
  const at::Tensor branch = randn({2, 3}, 3);
  const at::Tensor gate = randn({2, 1}, 4);
  const Streams before = two_streams();
  const Streams after = flush(before.deferring({{branch, gate}, {0.25, 0.0}, norm.step()}));
  const at::Tensor normed = branch / ((branch * branch).mean(-1, true) + 1e-5).sqrt() * norm.gain().value();
  testing::expect_relative(after[0], before[0] + 0.25 * gate * normed, 1e-14, "X");
  testing::expect_same_bits(after[1], before[1], "a coefficient of 0 leaves the stream alone");
  EXPECT_FALSE(after.pending.has_value());
}

TEST(Streams, OneMoreStandsAtTheEnd) {
  Streams before = two_streams();
  before.rounds_input = true;
  before.handed = {randn({2}, 5)};
  const at::Tensor z = randn({2, 3}, 3);
  const Streams after = before.with("Z", z);
  ASSERT_EQ(after.list.size(), 3U);
  EXPECT_EQ(before.list.size(), 2U);
  EXPECT_EQ(after.list[2].name, "Z");
  EXPECT_TRUE(after[0].is_same(before[0]) && after[1].is_same(before[1]) && after[2].is_same(z));
  EXPECT_TRUE(after.rounds_input);
  EXPECT_TRUE(after.handed.empty());  // it was for the write of its own site
  EXPECT_EQ(flatten(after).layout.names, (std::vector<std::string>{"X", "Y", "Z"}));
  testing::expect_error<UsageError>(
      [&] {
        before.deferring({{z, {}}, {1.0, 1.0}}).with("Z", z);
      },
      {"with Z", "no pending branch"});
}

TEST(Streams, FlattenRoundTripsWithPendingGateAndHanded) {
  for (const bool with_gate : {false, true}) {
    Streams streams =
        two_streams().deferring({{randn({2, 3}, 3), with_gate ? randn({2, 1}, 4) : at::Tensor()}, {0.5, 1.0}});
    streams.handed = {randn({2}, 5)};
    const FlatStreams flat = flatten(streams);
    EXPECT_EQ(flat.tensors.size(), with_gate ? 5U : 4U);
    const Streams back = unflatten(flat.layout, flat.tensors);
    EXPECT_EQ(back.list[0].name, "X");
    EXPECT_EQ(back.pending->branch.gate.defined(), with_gate);
    const Streams a = flush(streams);
    const Streams b = flush(back);
    for (size_t i = 0; i < 2; ++i) testing::expect_same_bits(a[i], b[i], "stream");
    testing::expect_same_bits(back.handed[0], streams.handed[0], "handed");
  }
}

TEST(Streams, NothingACallerSeesIsOverwritten) {
  for (const auto& scheme : testing::all_schemes()) {
    const Toy toy(scheme, 3, 6, {});
    const at::Tensor e = randn({1, 2, 6}, 8);
    const at::Tensor copy = e.clone();
    Streams streams = toy.topology->open(e);
    for (size_t i = 0; i < toy.junctions.size(); ++i) {
      const FlatStreams before = flatten(streams);
      std::vector<at::Tensor> copies;
      for (const auto& tensor : before.tensors) copies.push_back(tensor.clone());
      const ReadResult read = toy.junctions[i]->read(streams, nullptr);
      const Streams next = toy.junctions[i]->write(read.streams, {toy.sublayer(i, read.branch_input), {}});
      flush(next);
      for (size_t t = 0; t < copies.size(); ++t) testing::expect_same_bits(before.tensors[t], copies[t], scheme);
      streams = next;
    }
    testing::expect_same_bits(e, copy, "the embedding");
  }
}

// A gate for each channel of a sample, or one for a sample, is part of the pass; any other acts before it.
TEST(Streams, APassTakesTheGateOfEachSample) {
  const at::Tensor value = randn({2, 3, 6}, 3);
  for (const auto& gate : {randn({2, 1, 6}, 4), randn({2, 1, 1}, 4), randn({2, 3, 1}, 4), randn({1}, 4)}) {
    const bool of_samples = gate.dim() == 3 && gate.size(1) == 1;
    const Streams streams{{{"h", randn({2, 3, 6}, 5)}}, Pending{{value, gate}, {1.0}}, {}};
    const ops::Junction pass = pass_over(streams);
    EXPECT_EQ(pass.gate.defined(), of_samples);
    EXPECT_EQ(pass.branch.is_same(value), of_samples);
    testing::expect_relative(ops::junction(pass).y, flush(streams)[0], 1e-14, "h");
  }
}

// Gates as families give them: none, a number for each channel of a sample (DiT), one for each sample (drop-path).
std::vector<at::Tensor> some_gates(at::ScalarType dtype) {
  const auto gate = [&](at::IntArrayRef shape) { return testing::leaf(randn(shape, 21).to(dtype)); };
  return {at::Tensor(), gate({2, 1, 6}), gate({2, 1, 1})};
}

// A read that consumes a pending branch must mean the same as a read of the flushed streams, forward and backward.
void expect_read_equals_flushed(const Toy& toy, const at::Tensor& gate, double tolerance, const std::string& what) {
  const at::Tensor embedding = testing::leaf(randn({2, 3, 6}, 8).to(toy.w[0].scalar_type()));
  std::vector<at::Tensor> leaves = toy.leaves(embedding);
  if (gate.defined()) leaves.push_back(gate);
  Streams streams = toy.topology->open(embedding);
  for (size_t i = 0; i < toy.junctions.size(); ++i) {
    const std::string here = what + " site " + std::to_string(i);
    const ReadResult read = toy.junctions[i]->read(streams, nullptr);
    const ReadResult flushed = toy.junctions[i]->read(flush(streams), nullptr);
    testing::expect_relative(read.branch_input, flushed.branch_input, tolerance, here);
    for (size_t s = 0; s < read.streams.list.size(); ++s) {
      testing::expect_relative(read.streams[s], flushed.streams[s], tolerance, here + " " + read.streams.list[s].name);
    }
    const auto got = testing::gradients(read.branch_input, leaves);
    const auto wanted = testing::gradients(flushed.branch_input, leaves);
    double terms = 0;  // a factor before the norm has a gradient of 0 that is a sum of such
    for (const auto& gradient : wanted) {
      if (gradient.defined()) terms = std::max(terms, testing::largest(gradient));
    }
    for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
      ASSERT_EQ(got[leaf].defined(), wanted[leaf].defined()) << here << " leaf " << leaf;
      if (!got[leaf].defined()) continue;
      testing::expect_relative(got[leaf], wanted[leaf], 10 * tolerance, here + " leaf " + std::to_string(leaf), terms);
    }
    streams = toy.junctions[i]->write(read.streams, {toy.sublayer(i, read.branch_input), gate});
  }
}

TEST(Streams, ReadOfPendingEqualsReadOfFlushed) {
  for (const auto& scheme : testing::all_schemes()) {
    for (const auto& [dtype, tolerance] : {std::pair{at::kDouble, 1e-14}, std::pair{at::kFloat, 1e-6}}) {
      for (const auto& norm : {nn::NormSpec{}, nn::NormSpec{.kind = nn::NormKind::layer, .eps = 1e-6, .bias = true}}) {
        const Toy toy(scheme, 3, 6, norm, /*modulated=*/false, /*fresh=*/false, dtype);
        for (const auto& gate : some_gates(dtype)) {
          const std::string what = scheme + " " + c10::toString(dtype) + " " + std::string(enum_text(norm.kind)) +
                                   (gate.defined() ? " gate of " + std::to_string(gate.numel()) : " no gate");
          expect_read_equals_flushed(toy, gate, tolerance, what);
        }
      }
    }
  }
}

class Collect : public Recorder {
 public:
  struct Entry {
    int64_t site;
    std::string name;
    at::Tensor before;
    at::Tensor after;
  };
  void stream(const Site& site, const std::string& name, const at::Tensor& before, const at::Tensor& after) override {
    entries.push_back({site.index, name, before, after});
  }
  void branch(const Site&, const at::Tensor& input, const at::Tensor& output) override {
    inputs.push_back(input);
    outputs.push_back(output);
  }
  std::vector<Entry> entries;
  std::vector<at::Tensor> inputs;
  std::vector<at::Tensor> outputs;
};

TEST(Streams, RecordsEachStreamBeforeAndAfterItsNorm) {
  const Toy toy("siamese", 3, 6, {.eps = 1e-5});
  Collect seen;
  const at::Tensor e = randn({1, 2, 6}, 8);
  toy.run(e, &seen);
  ASSERT_EQ(seen.entries.size(), 12U);
  ASSERT_EQ(seen.inputs.size(), 6U);
  EXPECT_EQ(seen.entries[2].name, "X");
  EXPECT_EQ(seen.entries[3].name, "Y");
  // Site 1: the pending branch of site 0 is in both streams.
  testing::expect_relative(seen.entries[3].before, e + seen.outputs[0], 1e-14, "Y before");
  testing::expect_relative(seen.entries[2].before, toy.at_site(0, "x_norm", e) + seen.outputs[0] / std::sqrt(2.0),
                           1e-14, "X before");
  testing::expect_relative(seen.entries[2].after, toy.at_site(1, "x_norm", seen.entries[2].before), 1e-13, "X after");
  testing::expect_relative(seen.entries[3].after, toy.at_site(1, "y_norm", seen.entries[3].before), 1e-13, "Y after");

  const Toy hybrid("siamese(x=hybrid)", 3, 6, {});
  Collect hybrid_seen;
  hybrid.run(e, &hybrid_seen);
  EXPECT_FALSE(hybrid_seen.entries[0].after.defined());  // X has no norm at an attention site
  EXPECT_TRUE(hybrid_seen.entries[2].after.defined());
}

}  // namespace
}  // namespace siamese::residual
