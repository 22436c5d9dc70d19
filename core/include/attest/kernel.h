/* The C interface between Attest and an attention kernel under test. The contract is core/kernel-interface.md; this
   header is its content. C99, no dependency. Later versions append to the structures and raise nothing else. */
#ifndef ATTEST_KERNEL_H
#define ATTEST_KERNEL_H

#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

#define ATTEST_ABI 1

enum {
  ATTEST_F64 = 0,
  ATTEST_F32 = 1,
  ATTEST_F16 = 2,
  ATTEST_BF16 = 3,
  ATTEST_F8_E4M3 = 4,
  ATTEST_F8_E5M2 = 5,
  ATTEST_BOOL = 6,
  ATTEST_I32 = 7, /* of lengths and starts alone */
  ATTEST_I8 = 8   /* of k, v, k_new and v_new alone: whole numbers from -128 to 127 */
};
enum { ATTEST_MASK_POST_SCALE = 0, ATTEST_MASK_PRE_SCALE = 1 }; /* scale*qk + b   |   scale*(qk + b) */
enum { ATTEST_CAUSAL_NONE = 0, ATTEST_CAUSAL_TOP_LEFT = 1, ATTEST_CAUSAL_BOTTOM_RIGHT = 2 };
enum { /* attest_problem.variants */
       ATTEST_WINDOW = 1,
       ATTEST_SOFTCAP = 2,
       ATTEST_ALIBI = 4,
       ATTEST_SINK = 8,
       ATTEST_DROPOUT = 16,
       ATTEST_LENGTHS = 32,
       ATTEST_PACKED = 64,
       ATTEST_PAGED = 128,
       ATTEST_APPEND = 256,
       ATTEST_CACHE_INDEX = 512,
       ATTEST_LEFT_PAD = 1024,
       ATTEST_CHUNK = 2048,
       ATTEST_DESCALE = 4096
};
enum { ATTEST_OK = 0, ATTEST_UNSUPPORTED = 1, ATTEST_REJECTED = 2 }; /* anything else: the kernel failed */

typedef struct attest_tensor {
  void* data;    /* NULL: absent */
  int32_t dtype; /* ATTEST_F64 ... */
  int32_t rank;  /* 0 to 4; entries beyond it are 0 */
  int64_t shape[4];
  int64_t stride[4]; /* in elements; 0 repeats */
} attest_tensor;

typedef struct attest_problem {
  uint32_t size;   /* sizeof(attest_problem): later versions append */
  attest_tensor q; /* [batch, heads,    M, dk] */
  attest_tensor k; /* [batch, kv_heads, N, dk]; kv_heads divides heads, head h reads kv head h / (heads / kv_heads) */
  attest_tensor v; /* [batch, kv_heads, N, dv] */
  attest_tensor mask; /* additive, or ATTEST_BOOL (one byte, 1 = may attend); [batch or 1, heads or 1, M, N] */
  double scale;       /* multiplies q.k; the definition's 1/sqrt(dk) is already in it */
  int32_t mask_convention;
  int32_t causal; /* on top of the mask */

  /* Since 1.1, there when size > offsetof(attest_problem, variants). A member counts only where its bit is set. */
  uint32_t variants; /* ATTEST_WINDOW | ...; only those that the manifest lists */
  int32_t alignment; /* WINDOW, CHUNK, ALIBI: what the position p of row i is, ATTEST_CAUSAL_TOP_LEFT: i,
                        ATTEST_CAUSAL_BOTTOM_RIGHT: i + N - M; as causal where that is not ATTEST_CAUSAL_NONE */
  int64_t window_left, window_right; /* WINDOW: keys p - left .. p + right, both inclusive; -1: unbounded */
  attest_tensor q_lengths,
      kv_lengths;                    /* LENGTHS: ATTEST_I32 [batch], or absent: all of M, of N. Rows and keys from there
                                        on are padding; positions, M and N are those of the entry's own lengths */
  attest_tensor q_starts, kv_starts; /* PACKED: ATTEST_I32 [sequences + 1], from 0, not decreasing; batch is 1, and
                                        sequence s has the tokens start[s] .. start[s + 1] - 1 of q, and of k and v */
  attest_tensor left_pad; /* LEFT_PAD: ATTEST_I32 [batch]: so many of an entry's first keys are padding; positions and N
                             count from the key behind them, and kv_lengths still from the first */
  attest_tensor
      page_table; /* PAGED: ATTEST_I32 [batch, columns]; k is [pages, kv_heads, page size, dk], v alike, key j of entry
                     b stands in slot j % page size of page page_table[b][j / page size], N is columns * page size, and
                     kv_lengths is there. Entries behind the last page that a length needs are read by nobody */
  attest_tensor page_table_v; /* PAGED: that of v, where it is another one; absent: page_table */
  attest_tensor cache_index;  /* CACHE_INDEX: ATTEST_I32 [batch], distinct: k and v have any number of rows in the place
                                 of batch, of  which entry b reads row cache_index[b] */
  attest_tensor k_new, v_new; /* APPEND: [batch, kv_heads, L, dk], [batch, kv_heads, L, dv], in the formats of k and v:
                                 an entry's next L keys. kv_lengths is there and counts those that k and v hold; the
                                 call writes the new ones behind them, bit for bit, into k and v, which are else
                                 read-only, and its rows see them: positions and N are those of kv_lengths + L */
  attest_tensor
      sink; /* SINK: ATTEST_F32, or another format that the manifest lists, [heads], finite or -inf (none): e^sink joins
               the sum of a row's weights, and the sum in its lse, and no value goes with it. In natural units, neither
               scaled nor masked; a row that sees no key has 0 for its output and the sink for its lse */
  double softcap;   /* SOFTCAP: c > 0: scale*qk becomes c * tanh(scale*qk / c), before a mask is added; masks are then
                       post-scale */
  double dropout_p; /* DROPOUT: 0 <= p < 1: after normalisation each weight becomes keep / (1 - p) times itself, and
                       nothing is normalised again; lse is without it. Never with PAGED, APPEND or CACHE_INDEX */
  int64_t dropout_seed; /* DROPOUT without keep: from 0 to 2^53 - 1; one seed is one mask of a problem's axes */
  attest_tensor keep;   /* DROPOUT: ATTEST_BOOL (one byte, 1 = kept), [batch or 1, heads or 1, M, N]; absent: the kernel
                           draws a mask of its own, in which each weight is kept with probability 1 - p */
  attest_tensor alibi_slopes; /* ALIBI: ATTEST_F32 [batch or 1, heads], finite, of either sign: -slope * |p - j| is
                                 added to the score of key j, after the scale, a cap and in the place of a mask or
                                 beside it; masks are then post-scale. p and j count in the row's own sequence */
  int64_t attention_chunk; /* CHUNK: C >= 1: a row whose position is p sees key j where floor(j / C) = floor(p / C), on
                              top of the mask, the causal form and a window; none where p < 0 */
  attest_tensor q_descale, k_descale,
      v_descale; /* DESCALE: ATTEST_F32, finite, > 0, a power of two beside f64; absent: 1. [batch or 1, heads or 1,
                    blocks or 1], of k and v kv_heads for heads: row i of q counts as
                    q_descale[b][h][i / q_descale_block] times itself, key j and its value alike by kv_descale_block.
                    A row or key is that of its entry, wherever it lies: padding counts, and pages and rows of a cache
                    do not */
  int64_t q_descale_block,
      kv_descale_block; /* DESCALE: so many rows, or keys, have a factor together, the last ones what is left; 0: all */
} attest_problem;

typedef struct attest_result {
  uint32_t size;
  attest_tensor out; /* [batch, heads, M, dv]; the caller allocates it, fills it with a sentinel and guards its edges */
  attest_tensor lse; /* [batch, heads, M], f64: log-sum-exp of the scaled, masked scores; data == NULL: not wanted */
} attest_result;

/* The backward pass: the gradients of a loss by q, k and v, given its gradient by the output, and by the log-sum-exp. */
typedef struct attest_backward_problem {
  uint32_t size;
  uint32_t reserved;             /* 0 */
  const attest_problem* forward; /* as the forward call had it */
  attest_tensor out, lse;        /* what this kernel's own forward call returned for it; absent where the manifest's
                                    "backward"."uses" does not list them */
  attest_tensor d_out;           /* [batch, heads, M, dv], in q's dtype */
  /* There when size > offsetof(attest_backward_problem, d_lse) */
  attest_tensor d_lse; /* [batch, heads, M], in q's dtype: the gradient by the log-sum-exp of the scaled, masked scores,
                          whatever form lse is returned in; absent: 0, and where the manifest's "backward"."d_lse" is
                          not true */
} attest_backward_problem;

typedef struct attest_gradients {
  uint32_t size;
  uint32_t reserved;        /* 0 */
  attest_tensor dq, dk, dv; /* in the shapes of q, k and v; data == NULL: not wanted. Written, never added to: the caller
                               fills them with a sentinel and guards their edges */
  /* There when size > offsetof(attest_gradients, dmask): by an additive mask and by sinks, in the shape and dtype of what
     they are by, and summed over its axes of length 1 */
  attest_tensor dmask, dsink;
} attest_gradients;

typedef struct attest_multihead_problem {
  uint32_t size;
  attest_tensor q, k, v; /* [batch, M|N|N, c_q|c_k|c_v] */
  attest_tensor w_q, w_k,
      w_v; /* [c_q, heads*dk], [c_k, heads*dk], [c_v, heads*dv], as in X*W; head h owns columns h*d .. h*d+d-1 */
  attest_tensor b_q, b_k, b_v; /* [heads*dk], [heads*dk], [heads*dv]; absent: none */
  attest_tensor w_o, b_o;      /* [heads*dv, d_o], [d_o]; w_o absent: the identity */
  attest_tensor bias_k,
      bias_v; /* [heads*dk], [heads*dv]: one key-value row appended after projection; mask and causal never hide it */
  attest_tensor mask; /* [batch or 1, heads or 1, M, N], without the appended column */
  double scale;
  int32_t mask_convention, causal;
  int32_t heads, reserved;
} attest_multihead_problem;

const char* attest_kernel_manifest(void); /* JSON, section 3; static storage */
int attest_kernel_attention(const attest_problem*, attest_result*, char* message, size_t message_size);
int attest_kernel_attention_backward(const attest_backward_problem*, attest_gradients*, char* message,
                                     size_t message_size); /* optional; "operations" with "attention_backward" */
int attest_kernel_multihead(const attest_multihead_problem*, attest_result*, char* message,
                            size_t message_size); /* optional; out is [batch, M, d_o] */

#ifdef __cplusplus
}
#endif

#endif /* ATTEST_KERNEL_H */
