// The optimizer divided among ranks: what each has of it, that together they do what one does, and that what they store
// is read back by any number of them.
#include "siamese/train/division.h"

#include "tests/support/errors.h"
#include "tests/support/tensors.h"
#include "tests/train/tiny_run.h"

#include "siamese/io/tensor_files.h"
#include "siamese/models/registry.h"
#include "siamese/train/optimizer.h"
#include "siamese/train/state_pieces.h"

namespace siamese::train {
namespace {

using siamese::testing::expect_error;

// A model with gradients in a buffer, as a trainer has it.
struct Trained {
  explicit Trained(const OptimConfig& optim, int rank = 0, int ranks = 1)
      : config(tiny_config({})),
        model(models::make_model(config.model, config.init, 1)),
        gradients(model->parameters()),
        division(ranks > 1 ? Division(gradients, model->blocks_of_parameters(), rank, ranks,
                                      optim.name != OptimizerName::muon)
                           : Division()),
        optimizer(make_optimizer(optim, model->parameters(), division)) {}

  const std::vector<nn::Parameter>& list() const { return model->parameters().list(); }
  void set_gradients(int64_t step) const {
    at::Tensor numbers = at::arange(gradients.whole().numel(), at::kFloat);
    gradients.whole().copy_(at::sin(numbers * 0.37 + static_cast<double>(step)) * 0.01);
  }

  RunConfig config;
  std::unique_ptr<models::Model> model;
  nn::GradientBuffer gradients;
  Division division;
  std::unique_ptr<Optimizer> optimizer;
};

OptimConfig optim_of(OptimizerName name) {
  OptimConfig optim;
  optim.name = name;
  return optim;
}

TEST(Division, EveryElementIsOneRanks) {
  for (const auto name : {OptimizerName::adamw, OptimizerName::muon}) {
    for (const int ranks : {2, 3, 7, 64}) {
      SCOPED_TRACE(ranks);
      std::vector<int64_t> next(Trained(optim_of(name)).list().size());
      int64_t largest = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const Trained part(optim_of(name), rank, ranks);
        int64_t mine = 0;
        for (const auto& cuts : part.division.parts()) {  // of floats: no two ranks' parts share a cache line
          for (const int64_t cut : cuts) EXPECT_EQ(cut % 16, 0);
        }
        for (size_t i = 0; i < part.list().size(); ++i) {
          const Piece piece = part.division.piece_of(i, part.list()[i].value.numel());
          mine += piece.size();
          if (piece.size() == 0) continue;
          EXPECT_EQ(piece.begin, next[i]) << part.list()[i].name;
          next[i] = piece.end;
          if (name == OptimizerName::muon) {
            EXPECT_TRUE(piece.is_whole(part.list()[i].value)) << part.list()[i].name;
          }
        }
        largest = std::max(largest, mine);
      }
      const Trained all(optim_of(name));
      int64_t total = 0;
      for (size_t i = 0; i < next.size(); ++i) {
        EXPECT_EQ(next[i], all.list()[i].value.numel()) << all.list()[i].name;
        total += next[i];
      }
      if (name == OptimizerName::adamw) {
        EXPECT_LE(static_cast<double>(largest), 1.05 * static_cast<double>(total) / ranks + 16);
      }
    }
  }
}

TEST(Division, KeepsItsPartOfTheMoments) {
  const auto bytes = [](const Trained& part) {
    size_t sum = 0;
    for (const auto& tensor : part.optimizer->state()) sum += tensor.value.nbytes();
    return static_cast<double>(sum);
  };
  const OptimConfig adamw = optim_of(OptimizerName::adamw);
  const double whole = bytes(Trained(adamw));
  for (int rank = 0; rank < 4; ++rank) EXPECT_NEAR(bytes(Trained(adamw, rank, 4)), whole / 4, 0.05 * whole / 4);
}

// Each rank's elements after some steps are those of an optimizer that is not divided, to the bit.
TEST(Division, PartsTogetherAreTheWhole) {
  for (const auto name : {OptimizerName::adamw, OptimizerName::muon}) {
    const Trained whole(optim_of(name));
    std::vector<Trained> parts;
    for (int rank = 0; rank < 3; ++rank) parts.emplace_back(optim_of(name), rank, 3);
    double squares = 0;
    for (int64_t step = 1; step <= 3; ++step) {
      whole.set_gradients(step);
      const double norm = std::sqrt(whole.optimizer->squared_gradient_norm().item<double>());
      whole.optimizer->step(1e-2, norm);
      squares = 0;
      for (const Trained& part : parts) {
        part.set_gradients(step);
        squares += part.optimizer->squared_gradient_norm().item<double>();
        part.optimizer->step(1e-2, norm);
      }
      EXPECT_NEAR(std::sqrt(squares), norm, 1e-9 * norm);
    }
    for (const Trained& part : parts) {
      for (size_t i = 0; i < part.list().size(); ++i) {
        const Piece piece = part.division.piece_of(i, part.list()[i].value.numel());
        EXPECT_TRUE(at::equal(piece.of(part.list()[i].value.detach()), piece.of(whole.list()[i].value.detach())))
            << part.list()[i].name;
      }
    }
  }
}

// Written by three, read by two and by one; and written by one, read by three.
TEST(Division, StateIsReadByAnyNumber) {
  const TemporaryFolder folder("division");
  const OptimConfig adamw = optim_of(OptimizerName::adamw);
  const Trained whole(adamw);
  whole.set_gradients(1);
  whole.optimizer->step(1e-2, 0);
  models::save_tensors(folder / "whole.safetensors", whole.optimizer->state(), {});
  std::vector<models::NamedTensor> pieces;
  for (int rank = 0; rank < 3; ++rank) {
    const Trained part(adamw, rank, 3);
    load_pieces(io::TensorFiles::open(folder / "whole.safetensors"), part.optimizer->state(), /*all=*/false);
    for (const auto& tensor : part.optimizer->state()) pieces.push_back(tensor);
  }
  EXPECT_GT(pieces.size(), whole.optimizer->state().size());  // borders that cut tensors
  models::save_tensors(folder / "pieces.safetensors", pieces, {});
  const io::TensorFiles files = io::TensorFiles::open(folder / "pieces.safetensors");
  const Trained alone(adamw);
  load_pieces(files, alone.optimizer->state(), /*all=*/true);
  const auto expected = whole.optimizer->state(), got = alone.optimizer->state();
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(at::equal(got[i].value, expected[i].value)) << got[i].name;
  for (int rank = 0; rank < 2; ++rank) {
    const Trained half(adamw, rank, 2);
    load_pieces(files, half.optimizer->state(), /*all=*/false);
    for (const auto& tensor : half.optimizer->state()) {
      const NamedPiece named = parse_piece_name(tensor.name);
      for (const auto& stored : expected) {
        if (stored.name != named.tensor) continue;
        const Piece piece = named.whole ? Piece{0, stored.value.numel()} : named.piece;
        EXPECT_TRUE(at::equal(tensor.value.view({-1}), piece.of(stored.value).view({-1}))) << tensor.name;
      }
    }
  }
  pieces.pop_back();
  models::save_tensors(folder / "less.safetensors", pieces, {});
  const auto load_less = [&] {
    load_pieces(io::TensorFiles::open(folder / "less.safetensors"), alone.optimizer->state(), /*all=*/true);
  };
  expect_error<DataError>(load_less, {"does not fit the model: missing v."});
  // What no parameter has is not passed over in silence, in pieces or whole.
  for (const char* const file : {"pieces.safetensors", "whole.safetensors"}) {
    auto fewer = alone.optimizer->state();
    fewer.erase(fewer.begin());
    const auto load_fewer = [&] { load_pieces(io::TensorFiles::open(folder / file), fewer, /*all=*/true); };
    expect_error<DataError>(load_fewer, {"unknown " + alone.optimizer->state().front().name});
  }
}

TEST(Division, NamesOfPieces) {
  EXPECT_EQ(piece_name("a.b", {0, 6}, 6), "a.b");
  EXPECT_EQ(piece_name("a.b", {2, 6}, 6), "a.b[2:6]");
  const NamedPiece named = parse_piece_name("a.b[2:6]");
  EXPECT_EQ(named.tensor, "a.b");
  EXPECT_EQ(named.piece.begin, 2);
  EXPECT_EQ(named.piece.end, 6);
  for (const char* const whole : {"a.b", "a[b]", "a[2:b]", "a[6:2]", "a[2:6", "[:]", "a[-1:3]", "a[1:2:3]x", ""}) {
    EXPECT_TRUE(parse_piece_name(whole).whole) << whole;
    EXPECT_EQ(parse_piece_name(whole).tensor, whole);
  }
}

}  // namespace
}  // namespace siamese::train
