// How the work of the optimizer is divided among ranks (engine.shard: optimizer): all trained parameters stand in one
// row, as in nn::GradientBuffer, which is cut into as many parts as there are ranks. A rank keeps moments of its part
// alone, gets the summed gradients of it, and sends the weights it has updated to the others.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "siamese/nn/parameters.h"

namespace siamese::train {

// Some elements of a tensor, in row-major order.
struct Piece {
  int64_t begin = 0;
  int64_t end = 0;

  int64_t size() const { return end - begin; }
  bool is_whole(const at::Tensor& tensor) const { return size() == tensor.numel(); }
  // A view: the tensor itself where it is all of it, otherwise one row.
  at::Tensor of(const at::Tensor& tensor) const;
};

// "m.head.weight[100:200]" of a piece; of a whole tensor its name.
std::string piece_name(const std::string& tensor, const Piece& piece, int64_t elements);
// What such a name says.
struct NamedPiece {
  std::string tensor;
  Piece piece;  // means nothing of a whole tensor
  bool whole = true;
};
NamedPiece parse_piece_name(const std::string& text);

class Division {
 public:
  // One part: this process does everything.
  Division() = default;
  // `cuts_tensors`: parts of equal size. Otherwise each border is moved to the nearest one between tensors: an
  // optimizer that sees a matrix as a whole needs it in one part.
  Division(const nn::GradientBuffer& gradients, int rank, int ranks, bool cuts_tensors);

  bool divided() const { return borders_.size() > 2; }
  // Of the row, ranks + 1 of them.
  const std::vector<int64_t>& borders() const { return borders_; }
  // What this rank updates of a parameter, by its place in the list of parameters, which has so many elements.
  Piece piece_of(size_t parameter, int64_t elements) const;

 private:
  std::vector<int64_t> borders_;
  std::vector<int64_t> begins_;  // of each parameter in the row
  int rank_ = 0;
};

}  // namespace siamese::train
