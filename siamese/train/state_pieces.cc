#include "siamese/train/state_pieces.h"

#include <algorithm>
#include <map>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "siamese/base/check.h"
#include "siamese/base/join.h"
#include "siamese/train/division.h"

namespace siamese::train {
namespace {

struct Stored {
  Piece piece;
  const io::TensorView* view;
};
using StoredPieces = std::map<std::string, std::vector<Stored>>;  // by tensor, in the order of their elements

int64_t elements_of(const io::TensorView& view) {
  int64_t count = 1;
  for (const int64_t size : view.shape) count *= size;
  return count;
}

StoredPieces stored_in(const io::TensorFiles& files) {
  StoredPieces stored;
  for (const io::TensorView& view : files.tensors()) {
    NamedPiece named = parse_piece_name(view.name);
    if (named.whole) named.piece = {0, elements_of(view)};
    if (named.piece.size() != elements_of(view)) {
      throw DataError(files.path().string() + ": " + view.name + ": expected " + std::to_string(named.piece.size()) +
                      " elements, as its name says, got " + std::to_string(elements_of(view)));
    }
    stored[named.tensor].push_back({named.piece, &view});
  }
  for (auto& [name, pieces] : stored) {
    std::sort(pieces.begin(), pieces.end(), [](const auto& a, const auto& b) { return a.piece.begin < b.piece.begin; });
  }
  return stored;
}

// The stored pieces that have elements of `wanted`, or none when some of its elements are stored nowhere.
std::vector<Stored> covering(const StoredPieces& stored, const std::string& tensor, const Piece& wanted) {
  const auto found = stored.find(tensor);
  if (found == stored.end()) return {};
  std::vector<Stored> parts;
  int64_t covered = wanted.begin;
  for (const Stored& part : found->second) {
    if (part.piece.end <= covered || part.piece.begin > covered || covered >= wanted.end) continue;
    parts.push_back(part);
    covered = part.piece.end;
  }
  return covered >= wanted.end ? parts : std::vector<Stored>{};
}

struct Wanted {
  std::vector<Stored> parts;
  Piece piece;
  at::Tensor row;
};

void fill(const Wanted& wanted) {
  for (const auto& [piece, view] : wanted.parts) {
    const int64_t begin = std::max(piece.begin, wanted.piece.begin), end = std::min(piece.end, wanted.piece.end);
    const at::Tensor given = models::as_tensor(*view).view({-1}).narrow(0, begin - piece.begin, end - begin);
    wanted.row.narrow(0, begin - wanted.piece.begin, end - begin).copy_(given);
  }
}

}  // namespace

void load_pieces(const io::TensorFiles& files, const std::vector<models::NamedTensor>& tensors, bool all) {
  const auto is_piece = [](const io::TensorView& view) { return !parse_piece_name(view.name).whole; };
  if (all && std::none_of(files.tensors().begin(), files.tensors().end(), is_piece)) {
    return models::load_tensors(files, tensors);
  }
  StoredPieces stored = stored_in(files);
  std::vector<Wanted> wanted;
  std::vector<std::string> problems;
  for (const auto& tensor : tensors) {
    NamedPiece named = parse_piece_name(tensor.name);
    if (named.whole) named.piece = {0, tensor.value.numel()};
    std::vector<Stored> parts = covering(stored, named.tensor, named.piece);
    const auto found = stored.find(named.tensor);
    if (parts.empty() && named.piece.size() > 0) problems.push_back("missing " + tensor.name);
    if (all && found != stored.end() && found->second.back().piece.end != named.piece.end) {
      problems.push_back(tensor.name + ": expected " + std::to_string(named.piece.end) + " elements, got " +
                         std::to_string(found->second.back().piece.end));
    }
    wanted.push_back({std::move(parts), named.piece, tensor.value.detach().view({-1})});
  }
  if (all) {
    for (const auto& tensor : tensors) stored.erase(tensor.name);
    for (const auto& [name, pieces] : stored) problems.push_back("unknown " + name);
  }
  if (!problems.empty()) throw DataError(files.path().string() + ": does not fit the model: " + join(problems, "; "));
  const c10::NoGradGuard no_grad;
  for (const Wanted& one : wanted) fill(one);
}

}  // namespace siamese::train
