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
  // `blocks`: of each parameter. `cuts_tensors`: each segment of the row (row_segments.h) is cut into parts of equal
  // size, so that all ranks have some of what is exchanged together. Otherwise the row as a whole is cut, each border
  // moved to the nearest one between tensors: an optimizer that sees a matrix as a whole needs it in one part.
  Division(const nn::GradientBuffer& gradients, const std::vector<int64_t>& blocks, int rank, int ranks,
           bool cuts_tensors);

  bool divided() const { return !parts_.empty(); }
  bool by_segments() const { return by_segments_; }
  // The cuts, ranks + 1 of them in each segment, or in the row: rank r has what lies between the r-th and the next.
  const std::vector<std::vector<int64_t>>& parts() const { return parts_; }
  // What this rank updates of a parameter, by its place in the list of parameters, which has so many elements.
  Piece piece_of(size_t parameter, int64_t elements) const;

 private:
  std::vector<std::vector<int64_t>> parts_;
  std::vector<int64_t> begins_;  // of each parameter in the row
  bool by_segments_ = false;
  int rank_ = 0;
};

}  // namespace siamese::train
