// The router of a mixture of experts, over ranges of rows. E experts, the k largest of each row are chosen.
//   p = softmax(logits), n = log sum exp(logits), v_r = p of the r-th largest logit (equal ones: the lower index first)
//   weights w_r = v_r, renormalised: v_r / S, S = sum of the v_r
// From the gradients of the weights, of p's mean over rows and of n^2:
//   dv_r = dw_r, renormalised: (dw_r - sum over j of dw_j w_j) / S
//   dlogits = p (dp - sum over e of p dp) + dn p,  dp_e = dmean_e + (dv_r where e is the r-th choice)
// logits, p, dlogits: [rows, E]; n: [rows]; chosen, weights, dweights: [rows, k], 1 <= k <= E. Dense, from row 0 on.
#pragma once

#include <cstdint>

namespace siamese::kernels {

struct RouteShape {
  int64_t experts = 0;
  int64_t per_row = 0;
  bool renormalise = false;
};

// Overwrites p, normalizer, chosen and weights for the rows [begin, end); ADDS their p to `sums` [E], row after row.
void route_forward(const RouteShape& shape, const float* logits, float* p, float* normalizer, int64_t* chosen,
                   float* weights, float* sums, int64_t begin, int64_t end);

// dweights may be null: 0. dmean: [E], the gradient of every row's p beside the weights'; dz: of every row's n^2.
// Overwrites dlogits.
void route_backward(const RouteShape& shape, const float* p, const float* normalizer, const int64_t* chosen,
                    const float* dweights, const float* dmean, double dz, float* dlogits, int64_t begin, int64_t end);

}  // namespace siamese::kernels
