// The one function of libsiamese_mpi.so: joins the MPI job that this process was started in. Owned by the caller, who
// deletes it when all is done; null when MPI cannot be initialised, after its own words about it.
#pragma once

#include "siamese/comm/group.h"

extern "C" siamese::comm::Group* siamese_join_mpi();

namespace siamese::comm {

inline constexpr const char* kMpiLibrary = "libsiamese_mpi.so";
inline constexpr const char* kJoinMpi = "siamese_join_mpi";

}  // namespace siamese::comm
