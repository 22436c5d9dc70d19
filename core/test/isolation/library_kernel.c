/* A kernel as a shared library, in C99, and variants of it that are wrong in one way: LIBRARY_VARIANT below. It also
   shows that <attest/kernel.h> is all that a kernel needs. */
#include <attest/kernel.h>
#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "misbehaving_library.h"

#if defined(EXPORTS_NOTHING)
int attest_unrelated(void);
int attest_unrelated(void) {
  return 0;
}
#else

const char* attest_kernel_manifest(void) {
  switch ((int)LIBRARY_VARIANT) {
    case BAD_MANIFEST:
      return "{\"name\": \"library\", \"dtypes\": [\"f64\"], \"colour\": \"red\"}";
    case NO_MANIFEST_TEXT:
      return NULL;
    case ANOTHER_ABI:
      return "{\"name\": \"library\", \"abi\": 2, \"dtypes\": [\"f64\"], \"news\": \"of that version\"}";
    case NOT_JSON:
      return "name: library";
    case CONTRADICTS_ITSELF:
      return "{\"name\": \"library\", \"dtypes\": [\"f64\"], \"arithmetic\": {\"f32\": {}}}";
    default:
      if (manifest_of_variant() != NULL) return manifest_of_variant();
      break;
  }
  return "{\"name\": \"library\", \"abi\": 1, \"dtypes\": [\"f64\", \"f32\"], \"lse\": true, \"masks\": [], "
         "\"strides\": true, "
         "\"thread_safe\": true}";
}

#if !defined(EXPORTS_MANIFEST_ONLY)

static double at(const attest_tensor* t, int64_t i0, int64_t i1, int64_t i2, int64_t i3) {
  const int64_t offset = i0 * t->stride[0] + i1 * t->stride[1] + i2 * t->stride[2] + i3 * t->stride[3];
  return t->dtype == ATTEST_F64 ? ((const double*)t->data)[offset] : (double)((const float*)t->data)[offset];
}

#ifndef FIRST_WRONG_CALL
#define FIRST_WRONG_CALL 2
#endif

/* Not from the first call on, so that a process started anew is seen to work. */
static int misbehave(const attest_problem* p, attest_result* r, char* message, size_t message_size) {
  static int calls = 0;
  if (++calls < FIRST_WRONG_CALL) return 0;
  switch ((int)LIBRARY_VARIANT) {
    case CRASHES:
      *(volatile int*)0 = 1;
      break;
    case HANGS:
      for (;;) sleep(60);
    case EXITS:
      exit(6);
    case ABORTS:
      abort();
    case WRITES_BEYOND:
      ((unsigned char*)r->out.data)[-1] = 0;
      break;
    case LEAVES_UNWRITTEN:
      return 2;
    case ROUNDS_UP:
      fesetround(FE_UPWARD);
      break;
    case CLOSES_CONNECTION:
      for (int fd = 3; fd < 64; ++fd) close(fd);
      break;
    case FAILS:
      snprintf(message, message_size, "no luck with call %d", calls);
      return 7;
    case PRINTS:
      puts("hello from the kernel");
      fflush(stdout);
      break;
    case LONG_MESSAGE:
      memset(message, 'm', message_size);
      return 7;
    default:
      return misbehave_further(calls, p, r, message, message_size);
  }
  return 0;
}

int attest_kernel_attention(const attest_problem* p, attest_result* r, char* message, size_t message_size) {
  /* q [batch, heads, M, dk], k [batch, kv_heads, N, dk], v [batch, kv_heads, N, dv], out [batch, heads, M, dv] */
  const int64_t batch = p->q.shape[0], heads = p->q.shape[1], M = p->q.shape[2], dk = p->q.shape[3];
  const int64_t N = p->k.shape[2], dv = p->v.shape[3];
  const int trouble = misbehave(p, r, message, message_size);
  attest_tensor k = p->k;
  double* weight;
  if ((int)LIBRARY_VARIANT == DENSE_KEYS) {
    k.stride[3] = 1;
    for (int axis = 2; axis >= 0; --axis) k.stride[axis] = k.stride[axis + 1] * k.shape[axis + 1];
  }
  if (trouble > 2) return trouble;
  if (p->mask.data != NULL || p->causal != ATTEST_CAUSAL_NONE) return ATTEST_UNSUPPORTED;
  weight = malloc((size_t)(N > 0 ? N : 1) * sizeof *weight);
  if (weight == NULL) return 3;
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t i = 0; i < M - (trouble == 2 ? 1 : 0); ++i) {
        /* pass 1: scores and row maximum */
        double top = -INFINITY, sum = 0.0;
        for (int64_t j = 0; j < N; ++j) {
          double dot = 0.0;
          for (int64_t c = 0; c < dk; ++c) dot += at(&p->q, b, h, i, c) * at(&k, b, h, j, c);
          weight[j] = dot * p->scale;
          if (weight[j] > top) top = weight[j];
        }
        /* pass 2: weights and their sum */
        for (int64_t j = 0; j < N; ++j) sum += weight[j] = exp(weight[j] - top);
        /* pass 3: the weighted mean of the values */
        for (int64_t c = 0; c < dv; ++c) {
          double o = 0.0;
          const int64_t offset =
              b * r->out.stride[0] + h * r->out.stride[1] + i * r->out.stride[2] + c * r->out.stride[3];
          for (int64_t j = 0; j < N; ++j) o += weight[j] * at(&p->v, b, h, j, c);
          if (r->out.dtype == ATTEST_F64) {
            ((double*)r->out.data)[offset] = o / sum;
          } else {
            ((float*)r->out.data)[offset] = (float)(o / sum);
          }
        }
        if (r->lse.data != NULL)
          ((double*)r->lse.data)[b * r->lse.stride[0] + h * r->lse.stride[1] + i * r->lse.stride[2]] = top + log(sum);
      }
    }
  }
  free(weight);
  return ATTEST_OK;
}

#if defined(WITH_MULTIHEAD)
/* Not multi-head attention: what goes in as q comes out, which is enough to see what arrives. */
int attest_kernel_multihead(const attest_multihead_problem* p, attest_result* r, char* message, size_t message_size) {
  const int64_t elements = p->q.shape[0] * p->q.shape[1] * p->q.shape[2];
  (void)message;
  (void)message_size;
  if (p->size != sizeof *p || p->q.shape[2] != r->out.shape[2]) return ATTEST_REJECTED;
  for (int64_t i = 0; i < elements; ++i) {
    const double x = at(&p->q, 0, 0, i, 0) + p->heads;
    if (r->out.dtype == ATTEST_F64)
      ((double*)r->out.data)[i] = x;
    else
      ((float*)r->out.data)[i] = (float)x;
  }
  return ATTEST_OK;
}
#endif
#endif
#endif
