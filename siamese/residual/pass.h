// A scheme's side of the fused pass between two branches (ops/junction.h): what is pending goes in as the branch.
#pragma once

#include "siamese/nn/norm.h"
#include "siamese/ops/junction.h"
#include "siamese/residual/streams.h"

namespace siamese::residual {

// A pass over one stream (y) or two (x, y) with their pending branch; UsageError for any other number.
ops::Junction pass_over(const Streams& streams);

// The same over the first of any number of streams; the pending branch must leave the others alone: UsageError.
ops::Junction pass_over_first(const Streams& streams);

// norm( the first stream ) as a branch takes it: rounded in the pass where the streams say so.
at::Tensor input_of_first(const nn::Norm& norm, const Streams& streams);

// The same streams with another first one, nothing pending.
Streams with_first(const Streams& streams, at::Tensor value);

// A deferred write to the first stream, which leaves the others alone.
Streams deferring_to_first(const Streams& streams, const Branch& branch);

// norm( skip * stream + coefficient * branch ): a write whose norm belongs to the writer.
at::Tensor norm_of_sum(const nn::Norm& norm, const at::Tensor& stream, double skip, const Branch& branch,
                       double coefficient = 1);

}  // namespace siamese::residual
