// The state of an optimizer as it is stored: whole tensors, or pieces of them (division.h) where several ranks wrote
// it. Who reads it may need other pieces than were written.
#pragma once

#include <vector>

#include "siamese/io/tensor_files.h"
#include "siamese/models/weights.h"

namespace siamese::train {

// Fills `tensors` in place, each a whole or a piece, from whatever pieces there are. `all`: they are the whole state,
// and whole tensors. DataError listing what is missing, misshapen or, of all, unknown; DataError, too, for the first
// piece whose data is not what its checksum says.
void load_pieces(const io::TensorFiles& files, const std::vector<models::NamedTensor>& tensors, bool all);

}  // namespace siamese::train
