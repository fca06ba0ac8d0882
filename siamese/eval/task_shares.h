// The scores of a round of batches (tasks.cc), of which each rank made one, on all ranks: bit for bit, which a line of
// a file would not promise for texts that are no UTF-8.
#pragma once

#include <vector>

#include "siamese/comm/group.h"
#include "siamese/runs/task_record.h"

namespace siamese::eval {

// lines[r] is what rank r made, for as many ranks as there are lines; lines[mine] is this one's. All ranks call it.
std::vector<runs::ScoresLine> shared_lines(comm::Group& group, std::vector<runs::ScoresLine> lines, size_t mine);

}  // namespace siamese::eval
