// What holds for the backward of every op of the room: it copies no input that forward copied, a wrong argument of
// x_backward is an error of one line, half types are as exact as they can be, and inside GradientsInPlace a .grad may
// lie in memory as it likes.
#include <map>
#include <set>

#include "tests/ops/case_inputs.h"
#include "tests/ops/op_cases.h"
#include "tests/support/errors.h"
#include "tests/support/recorded_ops.h"
#include "tests/support/tensors.h"
#include <gtest/gtest.h>

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/autograd.h>

#include "siamese/base/check.h"
#include "siamese/ops/gradient.h"
#include "siamese/ops/mode.h"
#include "siamese/ops/plain_gradient.h"

namespace siamese::ops {
namespace library_backward_test {

TEST(OpBackward, StridedInputsAreCopiedOnce) {
  const ModeGuard fused(Mode::fused);
  for (const auto& test : op_cases()) {
    if (test.what.find("no kernel") != std::string::npos) continue;  // the plain expression may stack them
    Tensors inputs = inputs_of(test, at::kFloat, kAll);
    for (auto& input : inputs) {
      const bool weights = test.op == "expert_feed_forward" && input.dim() == 3;  // a product copies them if it must
      if (!weights) input = strided(input);
    }
    const Tensors made = test.call(inputs);
    const testing::RecordedOps backward;
    gradients_from(made, inputs, kAll);
    EXPECT_EQ(backward.copies_of_strided(), 0) << test.op << " " << test.what;
  }
}

TEST(OpBackward, DenseInputsAreNotCopied) {
  const ModeGuard fused(Mode::fused);
  for (const auto& test : op_cases()) {
    if (test.what.find("no kernel") != std::string::npos) continue;  // the plain expression may stack them
    const Tensors inputs = inputs_of(test, at::kFloat, kAll);
    const testing::RecordedOps all;
    gradients_from(test.call(inputs), inputs, kAll);
    EXPECT_EQ(all.copies_of_strided(), 0) << test.op << " " << test.what;
  }
}

// A table's gradient does not exist: whoever asks for it is told so, at the latest in backward.
TEST(OpBackward, AGradientThatDoesNotExistIsRefused) {
  for (const auto& test : op_cases()) {
    for (size_t at = 0; at < test.inputs.size(); ++at) {
      if ((test.constant >> at & 1) == 0) continue;
      Tensors inputs = inputs_of(test, at::kFloat, 0);
      inputs[at].set_requires_grad(true);
      const std::string what = test.op + " " + test.what + ", input " + std::to_string(at);
      try {
        gradients_from(test.call(inputs), inputs, kAll);
        ADD_FAILURE() << what << ": the gradient was lost";
      } catch (const Error& error) {
        const std::string text = error.what();
        EXPECT_TRUE(text.starts_with("siamese::" + test.op + ": ")) << text;
        EXPECT_NE(text.find("expected a tensor that needs no gradient"), std::string::npos) << text;
      } catch (const c10::Error& error) {
        EXPECT_NE(std::string(error.what()).find("not implemented"), std::string::npos) << what << error.what();
      }
      const c10::NoGradGuard no_grad;
      EXPECT_NO_THROW(test.call(inputs)) << what << ", where nothing is recorded";
    }
  }
}

// Where another argument says what is right. These are legal: nothing but dy says how wide it is and what came before,
// a target may be any of the columns that there are, counts are numbers.
bool may_be(const std::string& op, const std::string& argument, int way) {
  static const std::map<std::string, std::set<int>> legal = {
      {"siamese::add_to_each_backward dy", {0, 1, 2, 3, 4, 5, 6}},
      {"siamese::embedding_backward dy", {2, 4, 5}},
      {"siamese::rope_backward dy", {0, 1, 3}},
      {"siamese::cross_entropy_backward logits", {2, 4}},
      {"siamese::route_backward counts", {7, 8}},
  };
  const auto found = legal.find(op + " " + argument);
  return found != legal.end() && found->second.contains(way);
}

// A call of x_backward as autograd makes it, with one tensor in one argument, or in its list, spoiled in one way.
struct SpoiledCall {
  const c10::OperatorHandle& op;
  const std::vector<c10::IValue>& right;

  // Whether this way applies.
  bool run(size_t argument, size_t item, int way) const {
    torch::jit::Stack stack(right.begin(), right.end());
    const bool list = stack[argument].isTensorList();
    at::Tensor tensor = list ? stack[argument].toTensorVector()[item] : stack[argument].toTensor();
    const at::Tensor wrong = spoiled(tensor, way);
    if (!wrong.defined()) return false;
    if (list) {
      Tensors tensors = stack[argument].toTensorVector();
      tensors[item] = wrong;
      stack[argument] = tensors;
    } else {
      stack[argument] = wrong;
    }
    op.callBoxed(stack);
    return true;
  }

  size_t items(size_t argument) const {
    if (right[argument].isTensorList()) return right[argument].toTensorVector().size();
    return right[argument].isTensor() && right[argument].toTensor().defined() ? 1 : 0;
  }

  void expect_errors(const std::string& what) const {
    for (size_t argument = 0; argument < right.size(); ++argument) {
      for (size_t item = 0; item < items(argument); ++item) {
        for (int way = 0; way < 9; ++way) expect_error(argument, item, way, what);
      }
    }
  }

  void expect_error(size_t argument, size_t item, int way, const std::string& what) const {
    const std::string name = op.schema().arguments()[argument].name();
    try {
      if (!run(argument, item, way) || may_be(op.schema().name(), name, way)) return;
      ADD_FAILURE() << what << ": " << name << " spoiled in way " << way << " was taken";
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_TRUE(text.starts_with(op.schema().name() + ": ")) << text;
      EXPECT_NE(text.find(": expected "), std::string::npos) << text;
      EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    } catch (const std::exception& error) {
      ADD_FAILURE() << what << ": " << name << " spoiled in way " << way << ": " << error.what();
    }
  }
};

TEST(OpBackward, AWrongArgumentIsAnErrorOfOneLine) {
  for (const auto mode : {Mode::fused, Mode::plain}) {
    for (const auto& test : op_cases()) {
      const ModeGuard guard(mode);
      const Tensors inputs = inputs_of(test, at::kFloat, kAll);
      const Tensors made = test.call(inputs);
      std::vector<testing::RecordedOp> calls;
      {
        const testing::RecordedOps backward;
        gradients_from(made, inputs, kAll);
        calls = backward.list();
      }
      const c10::NoGradGuard no_grad;
      const ModeGuard automatic(mode == Mode::plain ? Mode::plain : Mode::automatic);
      for (const auto& call : calls) {
        if (!call.name.starts_with("siamese::") || !call.name.ends_with("_backward")) continue;
        const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(call.name.c_str(), "");
        SpoiledCall{op, call.given}.expect_errors(call.name + " " + test.what);
      }
    }
  }
}

// Statistics and sums are made in float at least, so that a result of a half type is off by few roundings of its own.
TEST(OpBackward, HalfTypesAreOffByRoundingsOfTheirOwn) {
  struct Half {
    at::ScalarType type;
    double rounding;
  };
  for (const Half half : {Half{at::kBFloat16, 1.0 / 256}, Half{at::kHalf, 1.0 / 2048}}) {
    for (const auto& test : op_cases()) {
      const std::string what = test.op + " " + test.what + " in " + c10::toString(half.type);
      const Tensors inputs = inputs_of(test, half.type, kAll);
      OpCase rounded = test;
      for (auto& input : rounded.inputs) input = differentiable(input) ? input.to(half.type).to(at::kDouble) : input;
      const Tensors exact = inputs_of(rounded, at::kDouble, kAll);
      const Tensors made = test.call(inputs);
      const Tensors expected = test.plain(exact);
      ASSERT_EQ(made.size(), expected.size()) << what;
      for (size_t i = 0; i < made.size(); ++i) {
        expect_near(made[i], expected[i], 8 * half.rounding, what + ", output " + std::to_string(i));
      }
      const Tensors got = gradients_from(made, inputs, kAll);
      const Tensors wanted = gradients_from(expected, exact, kAll);
      for (size_t i = 0; i < got.size(); ++i) {
        expect_near(got[i], wanted[i], 16 * half.rounding, what + ", gradient of input " + std::to_string(i));
      }
    }
  }
}

// In the tensor that is there; the second does not lie row-major, the third is a part of something.
at::Tensor ones_beside(const at::Tensor& input, int way) {
  const auto sizes = input.sizes();
  if (way == 0 || input.dim() == 0) return at::ones(sizes, input.options());
  if (way == 1) return at::ones_like(strided(input));
  std::vector<int64_t> wide = sizes.vec();
  wide.push_back(2);
  return at::ones(wide, input.options()).select(-1, 0);
}

TEST(OpBackward, GradientsInPlaceWhereverTheyLie) {
  const ModeGuard fused(Mode::fused);
  for (const auto& test : op_cases()) {
    for (int way = 0; way < 3; ++way) {
      const auto add_gradients = [&](const Tensors& inputs) {
        Tensors roots, ones;
        for (const auto& output : test.call(inputs)) {
          if (!output.requires_grad()) continue;
          roots.push_back(output);
          ones.push_back(at::ones_like(output));
        }
        if (!roots.empty()) torch::autograd::backward(roots, ones);
      };
      const Tensors fresh = inputs_of(test, at::kFloat, kAll);
      const Tensors inputs = inputs_of(test, at::kFloat, kAll);
      for (const auto& input : inputs) {
        if (input.requires_grad()) input.mutable_grad() = ones_beside(input.detach(), way);
      }
      add_gradients(fresh);
      {
        const GradientsInPlace in_place;
        add_gradients(inputs);
      }
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (!inputs[i].requires_grad()) continue;
        const at::Tensor wanted = fresh[i].grad().defined() ? fresh[i].grad() + 1 : at::ones_like(inputs[i]);
        const std::string what = test.op + " " + test.what + ", way " + std::to_string(way);
        expect_near(inputs[i].grad(), wanted, 1e-5, what + ", input " + std::to_string(i));
      }
    }
  }
}

TEST(OpBackward, GradientsOfNothing) {
  const auto nothing = [](const Tensors&) { return Tensors{at::Tensor()}; };
  const Tensors made = gradients_of({at::Tensor(), at::Tensor()}, {true, false}, {at::Tensor()}, nothing);
  ASSERT_EQ(made.size(), 2u);
  for (const auto& gradient : made) EXPECT_EQ(gradient.numel(), 0);
}

}  // namespace library_backward_test
}  // namespace siamese::ops
