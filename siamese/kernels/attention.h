// Attention from the projected q, k, v to what the output projection reads, one head at a time:
//   q, k, v  each head's rows of qkv, with RMSNorm where there is a gain (kernels/rms_norm.h), then RoPE on q and k
//   s_ij = q_i . k_j / sqrt(D),  j <= i when causal, and j > i - window where there is one
//   lse_i = log sum_j exp(s_ij)
//   p_ij = exp(s_ij - lse_i)
//   out_i = sum_j p_ij v_j
// and backward, with delta_i = dout_i . out_i and ds_ij = p_ij (dout_i . v_j - delta_i) / sqrt(D):
//   dq_i = sum_j ds_ij k_j
//   dk_j = sum_i ds_ij q_i
//   dv_j = sum_i p_ij dout_i
// then RoPE turned back and the norms' backward. Backward recomputes q, k, v and p; only qkv, out and lse are kept.
//   qkv, dqkv  [B, T, (H + 2 Hkv) D]: the heads of q, then of k, then of v
//   out, dout  [B, T, H D]
//   lse        [B, H, T]
//   cos, sin   [T, D / 2], half rotation: y1 = x1 cos - x2 sin, y2 = x2 cos + x1 sin
//   gains      [D], shared by the heads
// qkv, out and their gradients are floats or bfloat16; everything between them is float.
// Query head h reads key/value head h / (H / Hkv). A task is one key/value head of one sample (task = b Hkv + head)
// with the query heads that read it: tasks are independent, and what a task computes does not depend on the range.
// Where there are fewer tasks than threads, a task is cut into pieces (AttentionPiece), with the same bits. A NaN or an
// infinity makes NaN of what it meets; a masked NaN may reach a few earlier rows (0 NaN is NaN).
#pragma once

#include <cstdint>

#include "siamese/kernels/bfloat16.h"

namespace siamese::kernels {

struct AttentionShape {
  int64_t batch = 0;
  int64_t tokens = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  bool causal = true;
  float eps = 0;
  int64_t window = 0;  // tokens that a token sees, itself among them; 0: all before it. Only when causal

  int64_t tasks() const { return batch * kv_heads; }
};

// Null: no rotation, no norm.
template <class T>  // float or Bfloat16
struct AttentionInputsOf {
  const T* qkv = nullptr;
  const float* cos = nullptr;
  const float* sin = nullptr;
  const float* q_gain = nullptr;
  const float* k_gain = nullptr;
  const float* v_gain = nullptr;
};
using AttentionInputs = AttentionInputsOf<float>;

// A head's rows are worked on in blocks, a function of the shape alone.
struct AttentionSizes {
  int64_t blocks = 0;     // of a head
  int64_t key_parts = 0;  // of a task's sums
  int64_t task_floats = 0;
  int64_t block_floats = 0;
};
AttentionSizes attention_sizes(const AttentionShape& shape, bool backward);

// Floats of scratch, this thread's own, for any range of tasks.
int64_t attention_forward_scratch(const AttentionShape& shape);
int64_t attention_backward_scratch(const AttentionShape& shape);

// Overwrites out and lse for the heads of the tasks.
void attention_forward(const AttentionShape& shape, const AttentionInputs& inputs, float* out, float* lse,
                       float* scratch, int64_t task_begin, int64_t task_end);
void attention_forward(const AttentionShape& shape, const AttentionInputsOf<Bfloat16>& inputs, Bfloat16* out,
                       float* lse, float* scratch, int64_t task_begin, int64_t task_end);

template <class T>
struct AttentionGradientsOf {
  const T* out = nullptr;
  const float* lse = nullptr;
  const T* d_out = nullptr;
  T* d_qkv = nullptr;        // overwritten
  float* d_gains = nullptr;  // [B, H, blocks, 3, D] (q, k, v), ADDED to where there is a gain; null: not wanted
};
using AttentionGradients = AttentionGradientsOf<float>;

void attention_backward(const AttentionShape& shape, const AttentionInputs& inputs, const AttentionGradients& gradients,
                        float* scratch, int64_t task_begin, int64_t task_end);
void attention_backward(const AttentionShape& shape, const AttentionInputsOf<Bfloat16>& inputs,
                        const AttentionGradientsOf<Bfloat16>& gradients, float* scratch, int64_t task_begin,
                        int64_t task_end);

// A task in pieces, for threads that share it. The pieces of a step are independent and may run at once, in any order;
// steps follow one another:
//   keys      k and v of a block of tokens                                       for each block
//   block     forward: out of a block of query rows; backward: dq of one, whose
//             p and ds stay in of_block                                          for each head and block
//   sums      what a block's p and ds add to dk and dv of some keys: the blocks
//             in order (heads, then blocks), the parts of the keys at once       for each part
//   key_rows  the gradients of k and v of a block of tokens                      for each block
// The last two are backward's. No product is computed that attention_backward does not.
enum class AttentionStep { keys, block, sums, key_rows };
struct AttentionPiece {
  AttentionStep step = AttentionStep::keys;
  int64_t task = 0;
  int64_t head = 0;           // of the task's
  int64_t block = 0;          // of the head's, or of the tokens
  int64_t part = 0;           // of the keys
  float* of_task = nullptr;   // task_floats, the same for all pieces of a task
  float* of_block = nullptr;  // block_floats
};
void attention_forward_piece(const AttentionShape& shape, const AttentionInputs& inputs, float* out, float* lse,
                             const AttentionPiece& piece);
void attention_forward_piece(const AttentionShape& shape, const AttentionInputsOf<Bfloat16>& inputs, Bfloat16* out,
                             float* lse, const AttentionPiece& piece);
void attention_backward_piece(const AttentionShape& shape, const AttentionInputs& inputs,
                              const AttentionGradients& gradients, const AttentionPiece& piece);
void attention_backward_piece(const AttentionShape& shape, const AttentionInputsOf<Bfloat16>& inputs,
                              const AttentionGradientsOf<Bfloat16>& gradients, const AttentionPiece& piece);

}  // namespace siamese::kernels
