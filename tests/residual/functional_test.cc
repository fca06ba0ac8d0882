#include "siamese/residual/functional.h"

#include "tests/residual/harness.h"
#include "tests/support/errors.h"
#include "tests/support/schemes.h"

namespace siamese::residual {
namespace {

using testing::expect_error;

// The toy's own tensors, place by place, in the order of the functional form.
std::vector<at::Tensor> of_place(const Toy& toy, const std::string& prefix, const std::vector<ParameterSpec>& specs) {
  std::vector<at::Tensor> values;
  for (const auto& spec : specs) {
    values.push_back(toy.parameter(prefix + spec.name));
    EXPECT_EQ(values.back().sizes(), at::IntArrayRef(spec.shape)) << spec.name;
    EXPECT_EQ(toy.parameters.find(prefix + spec.name)->kind, spec.kind) << spec.name;
  }
  return values;
}

// Nothing but tensors goes from call to call.
at::Tensor run_functional(const FunctionalScheme& scheme, const Toy& toy, const at::Tensor& embedding,
                          const at::Tensor& gate) {
  const auto ends = of_place(toy, "", scheme.end_parameters());
  std::vector<at::Tensor> streams = scheme.open(ends, embedding);
  for (int64_t i = 0; i < scheme.sites(); ++i) {
    const auto parameters = of_place(toy, "site" + std::to_string(i) + ".", scheme.site_parameters(i));
    const bool gated = i > 0 && gate.defined() && scheme.before_read(i).pending.has_value();
    EXPECT_EQ(streams.size(), scheme.before_read(i).tensors() + (gated ? 1 : 0)) << scheme.text() << " site " << i;
    const FunctionalScheme::Read read = scheme.read(i, parameters, streams);
    EXPECT_EQ(read.streams.size(), scheme.after_read(i).tensors()) << scheme.text() << " site " << i;
    const at::Tensor branch = toy.sublayer(static_cast<size_t>(i), read.branch_input);
    streams = scheme.write(i, parameters, read.streams, branch, gate);
  }
  return scheme.close(ends, streams);
}

std::vector<nn::NormSpec> both_norms() {
  return {{.kind = nn::NormKind::rms, .eps = 1e-5}, {.kind = nn::NormKind::layer, .eps = 1e-6, .bias = true}};
}

// The same operations on the same tensors in the same order: the same bits.
TEST(Functional, EverySchemeIsTheLoopOverItsJunctions) {
  for (const auto& text : testing::all_schemes()) {
    for (const auto dtype : {at::kDouble, at::kFloat}) {
      for (const auto& norm : both_norms()) {
        for (const bool modulated : {false, true}) {
          const Toy toy(text, 3, 6, norm, modulated, /*fresh=*/false, dtype);
          const FunctionalScheme scheme(text, {.width = 6, .blocks = 3, .norm = norm, .modulated = modulated});
          const at::Tensor embedding = testing::leaf((randn({2, 5, 6}, 3) * 1.7).to(dtype));
          const at::Tensor gate = modulated ? testing::leaf(randn({2, 1, 6}, 4).to(dtype)) : at::Tensor();
          std::vector<at::Tensor> leaves = toy.leaves(embedding);
          if (modulated) leaves.push_back(gate);
          const std::string what =
              text + " " + std::string(enum_text(norm.kind)) + (modulated ? " gated " : " ") + c10::toString(dtype);
          const at::Tensor wanted = toy.run(embedding, nullptr, gate);
          const at::Tensor got = run_functional(scheme, toy, embedding, gate);
          testing::expect_same_bits(got, wanted, what);
          const auto wanted_gradients = testing::gradients(wanted, leaves);
          const auto got_gradients = testing::gradients(got, leaves);
          for (size_t i = 0; i < leaves.size(); ++i) {
            testing::expect_same_bits(got_gradients[i], wanted_gradients[i], what + " leaf " + std::to_string(i));
          }
        }
      }
    }
  }
}

TEST(Functional, RunsOnTensorsWithoutData) {
  for (const auto& text : testing::all_schemes()) {
    const FunctionalScheme scheme(text, {.width = 6, .blocks = 2});
    const at::TensorOptions meta = at::TensorOptions().device(at::kMeta);
    const auto ends = scheme.initial_ends(1, meta);
    std::vector<at::Tensor> streams = scheme.open(ends, at::empty({2, 5, 6}, meta));
    for (int64_t i = 0; i < scheme.sites(); ++i) {
      const auto parameters = scheme.initial_site(i, 1, meta, "here");
      const FunctionalScheme::Read read = scheme.read(i, parameters, streams);
      streams = scheme.write(i, parameters, read.streams, read.branch_input, at::empty({2, 1, 6}, meta));
    }
    EXPECT_EQ(scheme.close(ends, streams).sizes(), (std::vector<int64_t>{2, 5, 6})) << text;
  }
}

TEST(Functional, InitialValuesAreThoseOfTheEngine) {
  for (const auto& text :
       {"pre", "peri", "siamese(x=hybrid)", "siamese(gain_x=0.5, gain_y=2)", "hc", "mhc(init=xavier)",
        "mhc(res=permutations)", "attn_res(block=1)", "lambda", "denseformer", "mv_split"}) {
    const Build build{.width = 6, .blocks = 2};
    const FunctionalScheme scheme(text, build);
    const nn::Parameters parameters(9);
    const nn::Scope root(parameters);
    const auto topology = make_topology(text, root, build);
    const auto expect = [&](const std::vector<ParameterSpec>& specs, const std::vector<at::Tensor>& values,
                            const std::string& prefix) {
      ASSERT_EQ(specs.size(), values.size());
      for (size_t i = 0; i < specs.size(); ++i) {
        const auto* const engine = parameters.find(prefix + specs[i].name);
        ASSERT_NE(engine, nullptr) << prefix << specs[i].name;
        testing::expect_same_bits(values[i], engine->value, text + (" " + engine->name));
        EXPECT_TRUE(values[i].requires_grad());
      }
    };
    expect(scheme.end_parameters(), scheme.initial_ends(9), "");
    for (int64_t i = 0; i < scheme.sites(); ++i) {
      const std::string name = junction_name(site_at(i, build.blocks));
      topology->junction(root.child(name), site_at(i, build.blocks));
      expect(scheme.site_parameters(i), scheme.initial_site(i, 9, {}, name), name + ".");
    }
  }
}

TEST(Functional, MistakesAreNamed) {
  const FunctionalScheme scheme("siamese", {.width = 6, .blocks = 2});
  const auto ends = scheme.initial_ends(1);
  auto parameters = scheme.initial_site(0, 1, {}, "s");
  const at::Tensor x = at::ones({1, 2, 6});
  const auto streams = scheme.open(ends, x);
  expect_error<UsageError>([&] { scheme.read(4, parameters, streams); }, {"siamese", "site", "0 to 3", "got 4"});
  expect_error<UsageError>([&] { scheme.read(0, parameters, {x}); }, {"streams", "expected 2", "got 1"});
  expect_error<UsageError>([&] { scheme.write(0, parameters, {x, at::Tensor()}, x); }, {"streams", "undefined"});
  expect_error<UsageError>([&] { scheme.read(0, {}, streams); }, {"parameters", "expected 3", "got 0"});
  parameters[1] = at::ones({5});
  expect_error<UsageError>([&] { scheme.read(0, parameters, streams); },
                           {scheme.site_parameters(0)[1].name, "[6]", "[5]"});
  expect_error<UsageError>([] { FunctionalScheme("siamse", {.width = 6, .blocks = 2}); }, {"siamse", "siamese"});
  expect_error<UsageError>([] { FunctionalScheme("pre", {.width = 0, .blocks = 2}); }, {"width", "got 0"});
  expect_error<UsageError>([] { FunctionalScheme("pre", {.width = 6, .blocks = -1}); }, {"blocks", "got -1"});
}

}  // namespace
}  // namespace siamese::residual
