/* Attention of llama2.c's run.c (Karpathy 2023) as a shared library. It stands in the middle of forward(): build.sh
 * cuts these lines out as they are, and they and all of run.c are compiled within this file:
 *
 *     sh core/adapters/llama2.c/recipe.sh FOLDER
 *     attest check --kernel FOLDER/lib/llama2c.so --dtype f32
 *
 * llama2c.so       -O3, as the Makefile's run
 * llama2c-fast.so  -Ofast and -march=native, as its runomp, on one thread
 *
 * llama2.c answers one query at a time, at a position whose cache holds the keys and values of all positions up to it.
 * What stands here fills the cache, and calls it for each query with the position that shows it the keys it may see:
 * the last of its sequence, or under a causal form its own.
 */
#include <attest/kernel.h>
#include <attest/known_arguments.h>
#include <limits.h>
#if defined(LLAMA2C_FAST) && defined(__SSE__)
#include <xmmintrin.h>
#endif
#define TESTING /* run.c without its main */
#include LLAMA2C_SOURCE

/* Attention of one layer for the query s->q at the position pos, into s->xb. The names are those of forward(). */
static void attention(const Config* p, RunState* s, int pos) {
  const int dim = p->dim;
  const int kv_dim = (p->dim * p->n_kv_heads) / p->n_heads;
  const int kv_mul = p->n_heads / p->n_kv_heads;
  const int head_size = dim / p->n_heads;
  const int loff = 0; /* of the first layer, the only one */
#include "attention_of_forward.h"
}

/* Both builds: softmax() takes the maximum of all scores first, then exp and its sum, and divides the weights by that
 * before they meet V, all in f32. */
#define ARITHMETIC                                                                                           \
  "\"max\": \"running\", \"block\": 0, \"base2\": false, \"split_merge\": false, \"normalise_first\": true," \
  " \"prescaled_q\": null, \"bias_in_sum\": false"
#ifdef LLAMA2C_FAST
/* -Ofast: sums in any order; a division may become a product with an approximate reciprocal that one step of Newton's
 * method improves, and exp libmvec's, which the C library's manual has at 4 ulp. Programs flush subnormal numbers, read
 * and made, from their start on. */
#define NAME "llama2.c forward, flags of runomp"
#define OWN_ARITHMETIC \
  ", \"division_roundings\": 3, \"exp_ulp\": 4, \"flushes_subnormals\": true, \"flushes_inputs\": true"
#else
/* A division each, and expf of the C library, which errs by 1 ulp. */
#define NAME "llama2.c forward"
#define OWN_ARITHMETIC ", \"division_roundings\": 1, \"exp_ulp\": 1"
#endif

const char* attest_kernel_manifest(void) {
  return "{\"name\": \"" NAME "\", \"version\": \"" LLAMA2C_VERSION
         "\", \"dtypes\": [\"f32\"],"
         " \"arithmetic\": {" ARITHMETIC OWN_ARITHMETIC
         "},"
         /* A call is of one query, and neither reads a key behind its position nor does anything by the cache's size.
          */
         " \"claims\": [\"deterministic\", \"batch-invariant\", \"padding-invariant\", \"ignores-dead-values\"],"
         " \"causal\": [\"top-left\", \"bottom-right\"], \"masks\": [], \"grouped_query\": true,"
         " \"scale\": \"inv-sqrt-dk\", \"variants\": {\"lengths\": {\"queries\": false}},"
         /* A query sees the key of its own position at least. */
         " \"excludes\": [[\"causal\", \"fewer-keys\"], [\"lengths\", \"fewer-keys\"]],"
         " \"limits\": {\"value_dim\": \"head_dim\", \"min_keys\": 1}}";
}

/* The mode of the processor that a program of llama2.c runs in, and back. */
static unsigned entered(void) {
#if defined(LLAMA2C_FAST) && defined(__SSE__)
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040); /* flush to zero, denormals are zeros: what crtfastmath.o sets */
  return before;
#else
  return 0;
#endif
}
static void left(unsigned before) {
#if defined(LLAMA2C_FAST) && defined(__SSE__)
  _mm_setcsr(before);
#else
  (void)before;
#endif
}

/* Copies one batch entry of a row-major tensor [batch][heads][tokens][dk] into a cache [tokens][heads][dk]. */
static void fill(float* cache, const attest_tensor* t, int64_t entry) {
  const int64_t heads = t->shape[1], tokens = t->shape[2], dk = t->shape[3];
  const float* from = (const float*)t->data + entry * heads * tokens * dk;
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t j = 0; j < tokens; ++j, from += dk)
      memcpy(cache + (j * heads + h) * dk, from, (size_t)dk * sizeof *from);
}

/* The position of row i of so many, which sees the keys up to there. */
static int64_t position(const attest_problem* p, int64_t entry, int64_t i) {
  const int lengths = p->size > offsetof(attest_problem, variants) && (p->variants & ATTEST_LENGTHS) != 0;
  const int64_t keys = lengths ? ((const int32_t*)p->kv_lengths.data)[entry] : p->k.shape[2];
  if (p->causal == ATTEST_CAUSAL_TOP_LEFT) return i;
  return p->causal == ATTEST_CAUSAL_BOTTOM_RIGHT ? i + keys - p->q.shape[2] : keys - 1;
}

int attest_kernel_attention(const attest_problem* p, attest_result* r, char* message, size_t message_size) {
  const int known = attest_known_arguments(p, r, message, message_size);
  if (known != ATTEST_OK) return known;
  if (p->v.shape[3] != p->q.shape[3]) {
    snprintf(message, message_size, "keys and values have one width in llama2.c");
    return ATTEST_UNSUPPORTED;
  }
  const int64_t heads = p->q.shape[1], rows = p->q.shape[2], dk = p->q.shape[3], keys = p->k.shape[2];
  if ((double)heads * (double)keys * (double)dk > INT_MAX) {
    snprintf(message, message_size, "llama2.c counts elements in an int: this has too many");
    return ATTEST_UNSUPPORTED;
  }
  Config config = {.dim = (int)(heads * dk),
                   .hidden_dim = 1,
                   .n_layers = 1,
                   .n_heads = (int)heads,
                   .n_kv_heads = (int)p->k.shape[1],
                   .vocab_size = 1,
                   .seq_len = (int)keys};
  RunState state;
  malloc_run_state(&state, &config);
  const unsigned before = entered();
  for (int64_t b = 0; b < p->q.shape[0]; ++b) {
    fill(state.key_cache, &p->k, b), fill(state.value_cache, &p->v, b);
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t first = (b * heads * rows + i) * dk; /* of the first head's row */
      for (int64_t h = 0; h < heads; ++h)
        memcpy(state.q + h * dk, (const float*)p->q.data + first + h * rows * dk, (size_t)dk * sizeof(float));
      /* NaN where the call is to write: forward()'s memory is not new. */
      memset(state.att, 0xFF, (size_t)(heads * keys) * sizeof(float));
      memset(state.xb, 0xFF, (size_t)(heads * dk) * sizeof(float));
      attention(&config, &state, (int)position(p, b, i));
      for (int64_t h = 0; h < heads; ++h)
        memcpy((float*)r->out.data + first + h * rows * dk, state.xb + h * dk, (size_t)dk * sizeof(float));
    }
  }
  left(before);
  free_run_state(&state);
  return ATTEST_OK;
}
