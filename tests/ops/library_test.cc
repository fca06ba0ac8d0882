// What holds for every op of the room: its parts are registered, our kernel equals the plain expression whichever
// inputs want a gradient and whichever outputs got one, however the inputs lie in memory, and a wrong argument is an
// error of one line.
#include <set>

#include "tests/ops/case_inputs.h"
#include "tests/ops/op_cases.h"
#include "tests/support/tensors.h"
#include "tests/support/threads.h"
#include <gtest/gtest.h>

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/autograd.h>

#include "siamese/base/check.h"
#include "siamese/base/random.h"
#include "siamese/ops/linear.h"
#include "siamese/ops/mode.h"

namespace siamese::ops {
namespace {

// Values, and the gradients of all inputs from the outputs of `from`, of `call` on float inputs against the plain
// expression in double.
void compare(const OpCase& test, const Tensors& single, const Tensors& exact, uint64_t from, const std::string& how) {
  const std::string what = test.op + " " + test.what + ", " + how;
  const Tensors made = test.call(single);
  const Tensors expected = test.plain(exact);
  ASSERT_EQ(made.size(), expected.size()) << what;
  for (size_t i = 0; i < made.size(); ++i) {
    expect_near(made[i], expected[i], test.tolerance, what + ", output " + std::to_string(i));
  }
  const Tensors got = gradients_from(made, single, from);
  const Tensors wanted = gradients_from(expected, exact, from);
  for (size_t i = 0; i < got.size(); ++i) {
    expect_near(got[i], wanted[i], test.tolerance, what + ", gradient of input " + std::to_string(i));
  }
}

TEST(OpLibrary, EveryOpHasItsKernelsAndACase) {
  std::set<std::string> with_case;
  for (const auto& test : op_cases()) with_case.insert(test.op);
  auto& dispatcher = c10::Dispatcher::singleton();
  size_t seen = 0;
  for (const auto& name : dispatcher.getAllOpNames()) {
    if (!name.name.starts_with("siamese::")) continue;
    ++seen;
    const std::string op = name.name.substr(9);
    const auto handle = dispatcher.findOp(name).value();
    const auto has = [&](c10::DispatchKey key) { return handle.hasKernelForDispatchKey(key); };
    EXPECT_TRUE(has(c10::DispatchKey::CompositeExplicitAutograd)) << op << " has no plain form";
    EXPECT_TRUE(has(c10::DispatchKey::Autograd)) << op << " says nothing of its gradient";
    const bool pair = dispatcher.findOp({name.name + "_forward", ""}).has_value();
    const bool part = op.ends_with("_forward") || op.ends_with("_backward");
    EXPECT_TRUE(pair || (has(c10::DispatchKey::CPU) && has(c10::DispatchKey::Meta))) << op << " lacks a kernel";
    EXPECT_TRUE(part || with_case.contains(op)) << op << " has no case in tests/ops/op_cases.cc";
  }
  EXPECT_GT(seen, 0u);
}

TEST(OpLibrary, FusedEqualsPlainWhicheverGradientsAreWantedOrCame) {
  const ModeGuard fused(Mode::fused);
  for (const auto& test : op_cases()) {
    for (uint64_t trial = 0; trial < 12; ++trial) {
      const uint64_t wanted = trial == 0 ? kAll : random_u64(7, trial, 0);
      const uint64_t from = trial <= 1 ? kAll : random_u64(7, trial, 1);
      compare(test, inputs_of(test, at::kFloat, wanted), inputs_of(test, at::kDouble, wanted), from,
              "trial " + std::to_string(trial));
    }
  }
}

TEST(OpLibrary, PlainPathEqualsPlainExpression) {
  const ModeGuard plain(Mode::plain);
  for (OpCase test : op_cases()) {
    test.tolerance = 1e-12;
    for (uint64_t trial = 0; trial < 4; ++trial) {
      const uint64_t wanted = trial == 0 ? kAll : random_u64(8, trial, 0);
      const uint64_t from = trial == 0 ? kAll : random_u64(8, trial, 1);
      compare(test, inputs_of(test, at::kDouble, wanted), inputs_of(test, at::kDouble, wanted), from,
              "in double, trial " + std::to_string(trial));
    }
  }
}

TEST(OpLibrary, HowInputsLieInMemoryDoesNotMatter) {
  for (const auto& test : op_cases()) {
    Tensors single = inputs_of(test, at::kFloat, kAll);
    for (auto& input : single) input = strided(input);
    compare(test, single, inputs_of(test, at::kDouble, kAll), kAll, "strided");
  }
}

// The threads that share the work do not share the caller's InferenceMode.
TEST(OpLibrary, RunInInferenceModeOnSeveralThreads) {
  const testing::ThreadsGuard before;
  at::set_num_threads(2);
  for (const auto& test : op_cases()) {
    const c10::InferenceMode inference;
    const Tensors inputs = inputs_of(test, at::kFloat, 0);
    for (int i = 0; i < 5; ++i) EXPECT_NO_THROW(test.call(inputs)) << test.op << " " << test.what;
  }
  const c10::InferenceMode inference;
  const at::Tensor x = testing::randn({512, 64}, 1, at::kFloat);
  const at::Tensor w = testing::randn({256, 64}, 2, at::kFloat);
  for (int i = 0; i < 20; ++i) EXPECT_NO_THROW(ops::linear(x, w, at::Tensor()));
}

TEST(OpLibrary, MetaTensorsHaveTheShapesOfRealOnes) {
  for (const auto& test : op_cases()) {
    Tensors meta;
    for (const auto& input : test.inputs) meta.push_back(input.to(at::kMeta));
    const Tensors real = test.plain(test.inputs);
    for (const Call& call : {test.call, test.plain}) {
      const Tensors made = call(meta);
      ASSERT_EQ(made.size(), real.size()) << test.op;
      for (size_t i = 0; i < made.size(); ++i) {
        EXPECT_TRUE(made[i].is_meta() && made[i].sizes() == real[i].sizes()) << test.op << " " << test.what;
      }
    }
  }
}

TEST(OpLibrary, SecondDerivativesRaise) {
  for (const auto& test : op_cases()) {
    const Tensors inputs = inputs_of(test, at::kFloat, kAll);
    Tensors roots, weights, sources;
    for (const auto& output : test.call(inputs)) {
      if (!output.requires_grad()) continue;
      roots.push_back(output);
      weights.push_back(testing::randn(output.sizes(), 9, at::kFloat).set_requires_grad(true));
    }
    for (const auto& input : inputs) {
      if (input.requires_grad()) sources.push_back(input);
    }
    if (roots.empty()) continue;
    const Tensors first = torch::autograd::grad(roots, sources, weights, /*retain_graph=*/true, /*create_graph=*/true,
                                                /*allow_unused=*/true);
    for (const auto& gradient : first) {
      if (!gradient.defined()) continue;
      EXPECT_TRUE(gradient.requires_grad()) << test.op << ": the second derivative would be lost";
      if (!gradient.requires_grad() || test.linear) continue;
      EXPECT_ANY_THROW(torch::autograd::grad({gradient.sum()}, sources, {}, /*retain_graph=*/true,
                                             /*create_graph=*/false, /*allow_unused=*/true))
          << test.op << " " << test.what;
    }
  }
}

TEST(OpLibrary, AWrongArgumentIsAnErrorOfOneLineOrWhatThePlainExpressionSays) {
  for (const auto& test : op_cases()) {
    for (size_t at = 0; at < test.inputs.size(); ++at) {
      for (int way = 0; way < 9; ++way) {
        Tensors inputs = inputs_of(test, at::kFloat, kAll);
        const at::Tensor wrong = spoiled(inputs[at].detach(), way);
        if (!wrong.defined()) continue;
        inputs[at] = wrong;
        const std::string what =
            test.op + " " + test.what + ", input " + std::to_string(at) + " wrong in way " + std::to_string(way);
        Tensors made;
        try {
          made = test.call(inputs);
        } catch (const Error& error) {
          const std::string text = error.what();
          EXPECT_TRUE(text.starts_with("siamese::") && text.find("expected") != std::string::npos) << text;
          EXPECT_EQ(text.find('\n'), std::string::npos) << text;
          continue;
        }
        // It was a legal call after all: then with the right result.
        Tensors exact;
        for (const auto& input : inputs) exact.push_back(differentiable(input) ? input.to(at::kDouble) : input);
        Tensors expected;
        ASSERT_NO_THROW(expected = test.plain(exact)) << what << " was not refused";
        for (size_t i = 0; i < made.size() && !made[i].is_meta(); ++i) {
          expect_near(made[i], expected[i], test.tolerance, what + " was not refused");
        }
      }
    }
  }
}

}  // namespace
}  // namespace siamese::ops
