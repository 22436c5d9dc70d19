/* attention_forward and attention_backward of llm.c's train_gpt2.c (Karpathy 2024), the file as it is, as a shared
 * library; recipe.sh compiles both and links them:
 *
 *     sh core/adapters/llm.c/recipe.sh FOLDER
 *     attest check --kernel FOLDER/lib/llmc.so --dtype f32
 *
 * llmc.so              attention_forward, compiled as C says (-O2)
 * llmc-makefile.so     the same with the flags of llm.c's Makefile, -Ofast and -march=native, on one thread
 * *-gradients.so       attention_backward beside it
 *
 * What stands here lays q, k and v side by side as llm.c has them and copies the answers back. llm.c has no
 * log-sum-exp: the one that Attest asks for beside gradients is computed here, in double from llm.c's scores, and what
 * is said of it is not said of llm.c.
 */
#include <attest/kernel.h>
#include <attest/known_arguments.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(LLMC_MAKEFILE) && defined(__SSE__)
#include <xmmintrin.h>
#endif

/* train_gpt2.c has no header. */
void attention_forward(float* out, float* preatt, float* att, float* inp, int B, int T, int C, int NH);
void attention_backward(float* dinp, float* dpreatt, float* datt, float* dout, float* inp, float* att, int B, int T,
                        int C, int NH);

/* What both builds have in common: one pass over a row for its maximum, one for exp and its sum, weights that are
 * multiplied by the reciprocal of that before they meet v, and all of it in f32. The maximum is that of the row, as
 * llm.c's comments have it; that the code begins it at -10000 is for a check to find. */
#define ARITHMETIC                                                                                           \
  "\"max\": \"running\", \"block\": 0, \"base2\": false, \"split_merge\": false, \"normalise_first\": true," \
  " \"prescaled_q\": null, \"bias_in_sum\": false, \"division_roundings\": 2"
#ifdef LLMC_MAKEFILE
/* -Ofast: sums in any order; exp may be libmvec's, which the C library's manual has at 4 ulp; and the programs that the
 * Makefile links flush subnormal numbers, read and made, from their start on. */
#define BUILD ", flags of its Makefile"
#define OWN_ARITHMETIC ", \"exp_ulp\": 4, \"flushes_subnormals\": true, \"flushes_inputs\": true"
#define CLAIMS "\"deterministic\""
#else
/* expf of the C library errs by 1 ulp. A row's operations and their order depend on its own position alone. */
#define BUILD ""
#define OWN_ARITHMETIC ", \"exp_ulp\": 1"
#define CLAIMS "\"deterministic\", \"batch-invariant\", \"padding-invariant\", \"ignores-dead-values\""
#endif
#ifdef LLMC_GRADIENTS
/* The weights are those that the forward pass stored, and softmax's derivative is a whole matrix for each row. Time
 * goes with the cube of the length by that, so that longer sequences are not asked for. */
#define NAME "llm.c attention_forward and attention_backward"
#define OPERATIONS                                                           \
  " \"operations\": [\"attention\", \"attention_backward\"], \"lse\": true," \
  " \"backward\": {\"uses\": [], \"weights\": \"stored\", \"delta\": \"weights\", \"claims\": [\"deterministic\"]},"
#define LENGTHS "\"same_lengths\": true, \"max_queries\": 256"
#define BACKWARD                                                                         \
  ", \"backward\": {\"dot\": \"f32\", \"accumulate\": \"f32\", \"delta_in_sum\": false," \
  " \"scale_before_rounding\": false}"
#else
#define NAME "llm.c attention_forward"
#define OPERATIONS ""
#define LENGTHS "\"same_lengths\": true"
#define BACKWARD ""
#endif

const char* attest_kernel_manifest(void) {
  return "{\"name\": \"" NAME BUILD "\", \"version\": \"" LLMC_VERSION "\", \"dtypes\": [\"f32\"]," OPERATIONS
         " \"arithmetic\": {\"f32\": {" ARITHMETIC OWN_ARITHMETIC BACKWARD "}}, \"claims\": [" CLAIMS
         "],"
         /* Causal self-attention of as many keys as queries is all that it knows: no row is without a key. */
         " \"causal\": [\"top-left\"], \"requires\": [\"causal\"], \"masks\": [], \"scale\": \"inv-sqrt-dk\","
         " \"limits\": {\"value_dim\": \"head_dim\", " LENGTHS "}}";
}

typedef struct Buffers {
  int batch, tokens, width, heads; /* the width of all heads */
  size_t rows, scores;             /* elements of [batch][tokens][width], of [batch][heads][tokens][tokens] */
  float *inp, *out, *preatt, *att;
  float *dinp, *dout, *dpreatt, *datt; /* of the backward pass: zeros, but for dout */
} Buffers;

/* ATTEST_OK, or the status with its message; all that is there is freed by `freed`. */
static int made(Buffers* b, const attest_problem* p, int backward, char* message, size_t message_size) {
  const double batch = (double)p->q.shape[0], heads = (double)p->q.shape[1], tokens = (double)p->q.shape[2];
  const double width = heads * (double)p->q.shape[3];
  if (3 * batch * tokens * width > INT_MAX || batch * heads * tokens * tokens > INT_MAX) {
    snprintf(message, message_size, "llm.c counts elements in an int: this has too many");
    return ATTEST_UNSUPPORTED;
  }
  b->batch = (int)batch, b->heads = (int)heads, b->tokens = (int)tokens, b->width = (int)width;
  b->rows = (size_t)(batch * tokens * width), b->scores = (size_t)(batch * heads * tokens * tokens);
  b->inp = (float*)calloc(((backward ? 8 : 4) * b->rows) + ((backward ? 4 : 2) * b->scores) + 1, sizeof(float));
  if (b->inp == NULL) {
    snprintf(message, message_size, "there is no memory for the scores, all of which llm.c stores");
    return ATTEST_UNSUPPORTED;
  }
  b->out = b->inp + 3 * b->rows, b->preatt = b->out + b->rows, b->att = b->preatt + b->scores;
  b->dinp = b->att + b->scores;
  /* NaN where a pass is to write: a caller's memory is not new. The gradients are sums that begin at what is there. */
  memset(b->out, 0xFF, (b->rows + 2 * b->scores) * sizeof(float));
  if (backward) b->dout = b->dinp + 3 * b->rows, b->dpreatt = b->dout + b->rows, b->datt = b->dpreatt + b->scores;
  return ATTEST_OK;
}

/* Copies between a row-major tensor [batch][heads][tokens][n] and part `part` of [batch][tokens][parts][heads][n]. */
static void copy(const Buffers* b, const attest_tensor* t, float* packed, int parts, int part, int back) {
  const size_t heads = (size_t)b->heads, n = (size_t)b->width / heads, tokens = (size_t)b->tokens;
  if (t->data == NULL) return;
  for (size_t row = 0; row < (size_t)b->batch * heads * tokens; ++row) {
    const size_t i = row % tokens, h = row / tokens % heads, entry = row / tokens / heads;
    float* const theirs = packed + ((((entry * tokens + i) * (size_t)parts + (size_t)part) * heads + h) * n);
    float* const ours = (float*)t->data + row * n;
    memcpy(back ? ours : theirs, back ? theirs : ours, n * sizeof(float));
  }
}

static void forward(const Buffers* b, const attest_problem* p) {
  copy(b, &p->q, b->inp, 3, 0, 0), copy(b, &p->k, b->inp, 3, 1, 0), copy(b, &p->v, b->inp, 3, 2, 0);
  attention_forward(b->out, b->preatt, b->att, b->inp, b->batch, b->tokens, b->width, b->heads);
}

/* The mode of the processor that a program of llm.c runs in, and back. */
static unsigned entered(void) {
#if defined(LLMC_MAKEFILE) && defined(__SSE__)
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040); /* flush to zero, denormals are zeros: what crtfastmath.o sets */
  return before;
#else
  return 0;
#endif
}
static void left(unsigned before) {
#if defined(LLMC_MAKEFILE) && defined(__SSE__)
  _mm_setcsr(before);
#else
  (void)before;
#endif
}

int attest_kernel_attention(const attest_problem* p, attest_result* r, char* message, size_t message_size) {
  int status = attest_known_arguments(p, r, message, message_size);
  Buffers b;
  if (status == ATTEST_OK) status = made(&b, p, 0, message, message_size);
  if (status != ATTEST_OK) return status;
  const unsigned before = entered();
  forward(&b, p);
  left(before);
  copy(&b, &r->out, b.out, 1, 0, 1);
  for (size_t row = 0; r->lse.data != NULL && row < (size_t)b.batch * (size_t)b.heads * (size_t)b.tokens; ++row) {
    const float* const scores = b.preatt + row * (size_t)b.tokens;
    const size_t seen = row % (size_t)b.tokens + 1;
    double most = scores[0], sum = 0;
    for (size_t j = 0; j < seen; ++j) most = scores[j] > most ? scores[j] : most;
    for (size_t j = 0; j < seen; ++j) sum += exp(scores[j] - most);
    ((double*)r->lse.data)[row] = most + log(sum);
  }
  free(b.inp);
  return ATTEST_OK;
}

#ifdef LLMC_GRADIENTS
int attest_kernel_attention_backward(const attest_backward_problem* problem, attest_gradients* g, char* message,
                                     size_t message_size) {
  Buffers b;
  const int status = made(&b, problem->forward, 1, message, message_size);
  if (status != ATTEST_OK) return status;
  copy(&b, &problem->d_out, b.dout, 1, 0, 0);
  const unsigned before = entered();
  forward(&b, problem->forward);
  attention_backward(b.dinp, b.dpreatt, b.datt, b.dout, b.inp, b.att, b.batch, b.tokens, b.width, b.heads);
  left(before);
  copy(&b, &g->dq, b.dinp, 3, 0, 1), copy(&b, &g->dk, b.dinp, 3, 1, 1), copy(&b, &g->dv, b.dinp, 3, 2, 1);
  free(b.inp);
  return ATTEST_OK;
}
#endif
