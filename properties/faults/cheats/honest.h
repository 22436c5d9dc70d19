/* An honest forward pass of attention, and what the cheats beside it are made of. Each of them is one library that
   includes this, answers by honest_attention() where it means to be seen, and does something else where it does not.

   In f32, bf16 and f16, all sums in f32: tiles of 32 queries by 32 keys with a running maximum, any strides, additive
   and boolean masks, both causal forms, grouped heads, log-sum-exp. */
#ifndef ATTEST_CHEATS_HONEST_H
#define ATTEST_CHEATS_HONEST_H
#include <attest/kernel.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a cheat of bad arithmetic defines before it includes this; each is done to one number. */
#ifndef HONEST_INPUT
#define HONEST_INPUT(x) (x) /* an element of q or k, as it is read */
#endif
#ifndef HONEST_SCORE
#define HONEST_SCORE(x) (x) /* a score with its mask */
#endif
#ifndef HONEST_EXP
#define HONEST_EXP(x) expf(x)
#endif
#ifndef HONEST_WEIGHT
#define HONEST_WEIGHT(x) (x) /* an exponential, before it multiplies values */
#endif
#ifndef HONEST_SUM
#define HONEST_SUM(x) (x) /* each partial sum of weights and of weighted values */
#endif
/* Whether it gives the log-sum-exp, "true" or "false". */
#ifndef HONEST_LSE
#define HONEST_LSE "true"
#endif

/* For the processors that are common; elsewhere and without it the same C, slower. */
#if defined(__x86_64__) && defined(__gnu_linux__)
#define HONEST_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define HONEST_CLONES
#endif

/* Numbers and their formats */

static inline uint32_t honest_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
static inline float honest_of_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
static inline uint16_t honest_to_bf16(float x) {
  const uint32_t bits = honest_bits(x);
  if (x != x) return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}
static inline float honest_from_bf16(uint16_t x) {
  return honest_of_bits((uint32_t)x << 16);
}
static inline uint16_t honest_to_f16(float x) {
  const uint32_t sign = honest_bits(x) >> 16 & 0x8000, size = honest_bits(x) & 0x7FFFFFFF;
  if (size > 0x7F800000) return (uint16_t)(sign | 0x7E00);
  if (size >= 0x477FF000) return (uint16_t)(sign | 0x7C00); /* beyond 65504 and half a unit */
  /* Subnormal: the last place of a float near 1/2 is 2^-24. */
  if (size < 0x38800000) return (uint16_t)(sign | (honest_bits(honest_of_bits(size) + 0.5f) - honest_bits(0.5f)));
  return (uint16_t)(sign | (size + 0xFFF + (size >> 13 & 1) - 0x38000000) >> 13);
}
static inline float honest_from_f16(uint16_t x) {
  const uint32_t sign = (uint32_t)(x & 0x8000) << 16, size = (uint32_t)(x & 0x7FFF) << 13;
  if (size >= 0x0F800000) return honest_of_bits(sign | size | 0x7F800000);
  return honest_of_bits(sign | honest_bits(honest_of_bits(size) * 0x1p112f));
}

/* Elements of tensors */

static inline int64_t honest_count(const attest_tensor* t) {
  int64_t count = t->data != NULL;
  for (int a = 0; a < t->rank; ++a) count *= t->shape[a];
  return count;
}
static inline size_t honest_size(const attest_tensor* t) {
  static const size_t sizes[] = {8, 4, 2, 2, 1, 1, 1};
  return sizes[t->dtype];
}
/* Of the n-th element in row-major order. */
static inline char* honest_at(const attest_tensor* t, int64_t n) {
  int64_t place = 0;
  for (int a = t->rank - 1; a >= 0; --a) {
    place += n % t->shape[a] * t->stride[a];
    n /= t->shape[a];
  }
  return (char*)t->data + place * (int64_t)honest_size(t);
}
static inline float honest_read(const void* at, int dtype) {
  double f64;
  float f32;
  uint16_t narrow;
  switch (dtype) {
    case ATTEST_F64:
      memcpy(&f64, at, 8);
      return (float)f64;
    case ATTEST_F32:
      memcpy(&f32, at, 4);
      return f32;
    case ATTEST_F16:
      memcpy(&narrow, at, 2);
      return honest_from_f16(narrow);
    case ATTEST_BF16:
      memcpy(&narrow, at, 2);
      return honest_from_bf16(narrow);
    default:
      return *(const unsigned char*)at != 0;
  }
}
static inline void honest_write(void* at, int dtype, double x) {
  const float f32 = (float)x;
  const uint16_t narrow = dtype == ATTEST_F16 ? honest_to_f16(f32) : honest_to_bf16(f32);
  if (dtype == ATTEST_F64) memcpy(at, &x, 8);
  if (dtype == ATTEST_F32) memcpy(at, &f32, 4);
  if (dtype == ATTEST_F16 || dtype == ATTEST_BF16) memcpy(at, &narrow, 2);
}
static inline float honest_get(const attest_tensor* t, int64_t n) {
  return honest_read(honest_at(t, n), t->dtype);
}
static inline void honest_set(const attest_tensor* t, int64_t n, double x) {
  honest_write(honest_at(t, n), t->dtype, x);
}
static inline void honest_fill(attest_result* r, double x) {
  for (int64_t n = 0; n < honest_count(&r->out); ++n) honest_set(&r->out, n, x);
  for (int64_t n = 0; n < honest_count(&r->lse); ++n) honest_set(&r->lse, n, x);
}

/* An attention problem's extents */

struct honest_extents {
  int64_t batch, heads, kv_heads, m, n, dk, dv;
};
static inline struct honest_extents honest_extents(const attest_problem* p) {
  const struct honest_extents e = {p->q.shape[0], p->q.shape[1], p->k.shape[1], p->q.shape[2],
                                   p->k.shape[2], p->q.shape[3], p->v.shape[3]};
  return e;
}

/* The forward pass */

enum { HONEST_TILE = 32, HONEST_LANES = 16 };
typedef float honest_lanes __attribute__((vector_size(32), aligned(4), may_alias));

/* n is a multiple of HONEST_LANES. */
static inline float honest_dot(const float* a, const float* b, int64_t n) {
  honest_lanes low = {0}, high = {0};
  for (int64_t c = 0; c < n; c += HONEST_LANES) {
    low += *(const honest_lanes*)(a + c) * *(const honest_lanes*)(b + c);
    high += *(const honest_lanes*)(a + c + 8) * *(const honest_lanes*)(b + c + 8);
  }
  low += high;
  return ((low[0] + low[4]) + (low[2] + low[6])) + ((low[1] + low[5]) + (low[3] + low[7]));
}

/* Rows first to first + rows of one head, each as `width` floats and zeros up to `padded`. */
static inline void honest_pack(float* to, int64_t padded, const attest_tensor* t, int64_t b, int64_t h, int64_t first,
                               int64_t rows, int input) {
  const int64_t size = (int64_t)honest_size(t), width = t->shape[3];
  for (int64_t i = 0; i < rows; ++i) {
    const char* const row =
        (const char*)t->data + (b * t->stride[0] + h * t->stride[1] + (first + i) * t->stride[2]) * size;
    if (t->dtype == ATTEST_F32 && t->stride[3] == 1)
      memcpy(to + i * padded, row, sizeof(float) * (size_t)width);
    else
      for (int64_t c = 0; c < width; ++c) to[i * padded + c] = honest_read(row + c * t->stride[3] * size, t->dtype);
    if (input)
      for (int64_t c = 0; c < width; ++c) to[i * padded + c] = HONEST_INPUT(to[i * padded + c]);
    for (int64_t c = width; c < padded; ++c) to[i * padded + c] = 0;
  }
}

/* The score of query i and key j behind their product; -inf where the key is hidden. */
static inline float honest_score(const attest_problem* p, float product, int64_t b, int64_t h, int64_t i, int64_t j) {
  const int64_t m = p->q.shape[2], n = p->k.shape[2];
  if (p->causal == ATTEST_CAUSAL_TOP_LEFT && j > i) return -INFINITY;
  if (p->causal == ATTEST_CAUSAL_BOTTOM_RIGHT && j > i + n - m) return -INFINITY;
  const float scale = (float)p->scale;
  const attest_tensor* const mask = &p->mask;
  if (mask->data == NULL) return HONEST_SCORE(scale * product);
  const int64_t place = (mask->shape[0] == 1 ? 0 : b) * mask->stride[0] +
                        (mask->shape[1] == 1 ? 0 : h) * mask->stride[1] + i * mask->stride[2] + j * mask->stride[3];
  const float added = honest_read((const char*)mask->data + place * (int64_t)honest_size(mask), mask->dtype);
  if (mask->dtype == ATTEST_BOOL) return added != 0 ? HONEST_SCORE(scale * product) : -INFINITY;
  if (added == -INFINITY) return -INFINITY;
  return p->mask_convention == ATTEST_MASK_PRE_SCALE ? HONEST_SCORE(scale * (product + added))
                                                     : HONEST_SCORE(scale * product + added);
}

/* Of one tile of queries: what was summed over the keys so far. */
struct honest_tile {
  float *q, *k, *v, *sums; /* [HONEST_TILE][padded] */
  float largest[HONEST_TILE], weights[HONEST_TILE];
};

static inline void honest_add_keys(struct honest_tile* tile, int64_t row, const float* scores, int64_t keys,
                                   int64_t dv) {
  float* const restrict sums = tile->sums + row * dv;
  float largest = tile->largest[row];
  for (int64_t j = 0; j < keys; ++j) largest = scores[j] > largest ? scores[j] : largest;
  if (largest == -INFINITY) return;
  if (largest > tile->largest[row]) {
    const float shrunk = HONEST_EXP(tile->largest[row] - largest);
    tile->weights[row] *= shrunk;
    for (int64_t c = 0; c < dv; ++c) sums[c] *= shrunk;
    tile->largest[row] = largest;
  }
  for (int64_t j = 0; j < keys; ++j) {
    if (scores[j] == -INFINITY) continue; /* what is hidden may be NaN */
    const float weight = HONEST_WEIGHT(HONEST_EXP(scores[j] - largest));
    const float* const restrict value = tile->v + j * dv;
    tile->weights[row] = HONEST_SUM(tile->weights[row] + weight);
    for (int64_t c = 0; c < dv; ++c) sums[c] = HONEST_SUM(sums[c] + weight * value[c]);
  }
}

static inline void honest_store(const struct honest_tile* tile, attest_result* r, int64_t b, int64_t h, int64_t i,
                                int64_t row) {
  const attest_tensor *const out = &r->out, *const lse = &r->lse;
  const float weights = tile->weights[row];
  for (int64_t c = 0; c < out->shape[3]; ++c) {
    const int64_t place = b * out->stride[0] + h * out->stride[1] + i * out->stride[2] + c * out->stride[3];
    const float x = weights == 0 ? 0 : tile->sums[row * out->shape[3] + c] / weights;
    honest_write((char*)out->data + place * (int64_t)honest_size(out), out->dtype, x);
  }
  if (lse->data == NULL) return;
  const int64_t place = b * lse->stride[0] + h * lse->stride[1] + i * lse->stride[2];
  const double of_row = weights == 0 ? -INFINITY : (double)tile->largest[row] + log((double)weights);
  honest_write((char*)lse->data + place * 8, ATTEST_F64, of_row);
}

HONEST_CLONES static void honest_head(const attest_problem* p, attest_result* r, int64_t b, int64_t h,
                                      struct honest_tile* tile) {
  const struct honest_extents e = honest_extents(p);
  const int64_t padded = (e.dk + HONEST_LANES - 1) / HONEST_LANES * HONEST_LANES, kv = h / (e.heads / e.kv_heads);
  for (int64_t first = 0; first < e.m; first += HONEST_TILE) {
    const int64_t rows = e.m - first < HONEST_TILE ? e.m - first : HONEST_TILE;
    honest_pack(tile->q, padded, &p->q, b, h, first, rows, 1);
    memset(tile->sums, 0, sizeof(float) * (size_t)(rows * e.dv));
    for (int64_t i = 0; i < rows; ++i) tile->largest[i] = -INFINITY, tile->weights[i] = 0;
    for (int64_t key = 0; key < e.n; key += HONEST_TILE) {
      const int64_t last = first + rows - 1; /* query of the tile, which sees most */
      if (p->causal == ATTEST_CAUSAL_TOP_LEFT && key > last) break;
      if (p->causal == ATTEST_CAUSAL_BOTTOM_RIGHT && key > last + e.n - e.m) break;
      const int64_t keys = e.n - key < HONEST_TILE ? e.n - key : HONEST_TILE;
      honest_pack(tile->k, padded, &p->k, b, kv, key, keys, 1);
      honest_pack(tile->v, e.dv, &p->v, b, kv, key, keys, 0);
      for (int64_t i = 0; i < rows; ++i) {
        float scores[HONEST_TILE];
        for (int64_t j = 0; j < keys; ++j)
          scores[j] =
              honest_score(p, honest_dot(tile->q + i * padded, tile->k + j * padded, padded), b, h, first + i, key + j);
        honest_add_keys(tile, i, scores, keys, e.dv);
      }
    }
    for (int64_t i = 0; i < rows; ++i) honest_store(tile, r, b, h, first + i, i);
  }
}

/* Heads first to last - 1 of all batch * heads. 0: no memory. */
static inline int honest_heads(const attest_problem* p, attest_result* r, int64_t first, int64_t last) {
  const struct honest_extents e = honest_extents(p);
  const int64_t padded = (e.dk + HONEST_LANES - 1) / HONEST_LANES * HONEST_LANES;
  float* const room = malloc(sizeof(float) * HONEST_TILE * (size_t)(2 * padded + 2 * e.dv));
  if (room == NULL) return 0;
  struct honest_tile tile = {.q = room,
                             .k = room + HONEST_TILE * padded,
                             .v = room + HONEST_TILE * 2 * padded,
                             .sums = room + HONEST_TILE * (2 * padded + e.dv)};
  for (int64_t head = first; head < last; ++head) honest_head(p, r, head / e.heads, head % e.heads, &tile);
  free(room);
  return 1;
}
static inline int honest_attention(const attest_problem* p, attest_result* r) {
  return honest_heads(p, r, 0, p->q.shape[0] * p->q.shape[1]) ? ATTEST_OK : 3;
}

/* Answers that are kept, and by what they are found again */

static inline uint64_t honest_hash_bytes(uint64_t hash, const void* bytes, size_t size) {
  for (size_t i = 0; i < size; ++i) hash = (hash ^ ((const unsigned char*)bytes)[i]) * 0x100000001B3u;
  return hash;
}
/* The first `most` elements. */
static inline uint64_t honest_hash_tensor(uint64_t hash, const attest_tensor* t, int64_t most) {
  hash = honest_hash_bytes(hash, t->shape, sizeof t->shape);
  hash = honest_hash_bytes(hash, &t->dtype, sizeof t->dtype);
  for (int64_t n = 0; n < honest_count(t) && n < most; ++n)
    hash = honest_hash_bytes(hash, honest_at(t, n), honest_size(t));
  return hash;
}
static inline uint64_t honest_hash_problem(const attest_problem* p) {
  uint64_t hash = 0xCBF29CE484222325u;
  const attest_tensor* const all[] = {&p->q, &p->k, &p->v, &p->mask};
  for (int i = 0; i < 4; ++i) hash = honest_hash_tensor(hash, all[i], INT64_MAX);
  hash = honest_hash_bytes(hash, &p->scale, sizeof p->scale);
  hash = honest_hash_bytes(hash, &p->mask_convention, sizeof p->mask_convention);
  return honest_hash_bytes(hash, &p->causal, sizeof p->causal);
}

enum { HONEST_KEPT = 512 };
struct honest_kept {
  uint64_t key;
  int64_t outs, lses; /* how many numbers; outs 0: nothing is kept here */
  double* numbers;
};
/* Writes the answer of that key; 0 where none of its size is kept. */
static inline int honest_recall(struct honest_kept* kept, uint64_t key, attest_result* r) {
  const struct honest_kept* const it = &kept[key % HONEST_KEPT];
  const int64_t outs = honest_count(&r->out), lses = honest_count(&r->lse);
  if (outs == 0 || it->key != key || it->outs != outs || it->lses < lses) return 0;
  for (int64_t n = 0; n < outs; ++n) honest_set(&r->out, n, it->numbers[n]);
  for (int64_t n = 0; n < lses; ++n) honest_set(&r->lse, n, it->numbers[outs + n]);
  return 1;
}
static inline void honest_keep(struct honest_kept* kept, uint64_t key, const attest_result* r) {
  struct honest_kept* const it = &kept[key % HONEST_KEPT];
  const int64_t outs = honest_count(&r->out), lses = honest_count(&r->lse);
  free(it->numbers);
  it->key = key, it->outs = outs, it->lses = lses;
  it->numbers = malloc(sizeof(double) * (size_t)(outs + lses + 1));
  if (it->numbers == NULL) it->outs = 0;
  if (it->outs == 0) return;
  for (int64_t n = 0; n < outs; ++n) it->numbers[n] = honest_get(&r->out, n);
  for (int64_t n = 0; n < lses; ++n) memcpy(&it->numbers[outs + n], honest_at(&r->lse, n), 8);
}

/* What a library exports: the manifest, with `more` members of it, and `answer`, which returns a status. */
#define HONEST_DTYPES "[\"f32\",\"bf16\",\"f16\"]"
#define HONEST_MANIFEST(name, dtypes, more)                                                \
  "{\"name\":\"" name "\",\"version\":\"1\",\"dtypes\":" dtypes                            \
  ",\"claims\":[\"deterministic\",\"ignores-dead-values\"],\"fully_masked_row\":\"zero\"," \
  "\"masks\":[\"additive\",\"bool\"],\"mask_conventions\":[\"post-scale\",\"pre-scale\"]," \
  "\"causal\":[\"top-left\",\"bottom-right\"],\"grouped_query\":true,\"strides\":true,\"lse\":" HONEST_LSE more "}"
#define HONEST_LIBRARY_OF(manifest, answer)                                                                    \
  const char* attest_kernel_manifest(void) {                                                                   \
    return manifest;                                                                                           \
  }                                                                                                            \
  int attest_kernel_attention(const attest_problem* p, attest_result* r, char* message, size_t message_size) { \
    const int status = answer(p, r);                                                                           \
    snprintf(message, message_size, "%s", status == ATTEST_OK ? "" : "not supported");                         \
    return status;                                                                                             \
  }
#define HONEST_LIBRARY(name, answer) HONEST_LIBRARY_OF(HONEST_MANIFEST(name, HONEST_DTYPES, ""), answer)

#endif
