/* attn() of calm's src/infer.c (Kapoulkine 2023), attention of one head, as a shared library. It is a function of that
 * file alone, so that the file is compiled within this one:
 *
 *     sh core/adapters/calm/recipe.sh FOLDER
 *     attest check --kernel FOLDER/lib/calm.so --dtype f32
 *
 * calm answers one query at a time over a cache of f16, which holds the keys and values of all heads token by token.
 * What stands here fills the cache, and calls attn() for each query and head, as forward() does, with the number of
 * keys that the query sees: those of its sequence, or under a causal form those up to its own.
 */
#include <attest/kernel.h>
#include <attest/known_arguments.h>
#include <limits.h>
#include <string.h>
#include CALM_SOURCE

const char* attest_kernel_manifest(void) {
  return "{\"name\": \"calm attn\", \"version\": \"" CALM_VERSION
         "\", \"dtypes\": [\"f32\"],"
         " \"kv_dtypes\": {\"f32\": [\"f16\"]},"
         /* The maximum of all scores comes first, then exp and its sum, all in f32. The weights are divided by the sum
          * before they meet V, and stay f32. */
         " \"arithmetic\": {\"max\": \"running\", \"block\": 0, \"base2\": false, \"split_merge\": false,"
         " \"normalise_first\": true, \"prescaled_q\": null, \"bias_in_sum\": false,"
         /* -ffast-math: sums in any order; a division may become a product with an approximate reciprocal that one step
          * of Newton's method improves, and exp libmvec's, which the C library's manual has at 4 ulp. */
         " \"division_roundings\": 3, \"exp_ulp\": 4},"
         /* A call is of one row, and neither reads a key behind those it sees nor does anything by the cache's size. */
         " \"claims\": [\"deterministic\", \"batch-invariant\", \"padding-invariant\", \"ignores-dead-values\"],"
         " \"causal\": [\"top-left\", \"bottom-right\"], \"masks\": [], \"grouped_query\": true,"
         " \"scale\": \"inv-sqrt-dk\", \"variants\": {\"lengths\": {\"queries\": false}},"
         /* A query sees the key of its own position at least. */
         " \"excludes\": [[\"causal\", \"fewer-keys\"], [\"lengths\", \"fewer-keys\"]],"
         " \"limits\": {\"value_dim\": \"head_dim\", \"min_keys\": 1}}";
}

/* Copies one batch entry of a row-major tensor [batch][heads][tokens][dk] into a cache [tokens][heads][dk]. */
static void fill(kvtype_t* cache, const attest_tensor* t, int64_t entry) {
  const int64_t heads = t->shape[1], tokens = t->shape[2], dk = t->shape[3];
  const kvtype_t* from = (const kvtype_t*)t->data + entry * heads * tokens * dk;
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t j = 0; j < tokens; ++j, from += dk)
      memcpy(cache + (j * heads + h) * dk, from, (size_t)dk * sizeof *from);
}

/* How many keys row i of an entry sees. */
static int64_t seen(const attest_problem* p, int64_t entry, int64_t i) {
  const int lengths = p->size > offsetof(attest_problem, variants) && (p->variants & ATTEST_LENGTHS) != 0;
  const int64_t keys = lengths ? ((const int32_t*)p->kv_lengths.data)[entry] : p->k.shape[2];
  if (p->causal == ATTEST_CAUSAL_TOP_LEFT) return i + 1;
  return p->causal == ATTEST_CAUSAL_BOTTOM_RIGHT ? i + 1 + keys - p->q.shape[2] : keys;
}

int attest_kernel_attention(const attest_problem* p, attest_result* r, char* message, size_t message_size) {
  const int known = attest_known_arguments(p, r, message, message_size);
  if (known != ATTEST_OK) return known;
  if (p->v.shape[3] != p->q.shape[3]) {
    snprintf(message, message_size, "keys and values have one width in calm");
    return ATTEST_UNSUPPORTED;
  }
  const int64_t heads = p->q.shape[1], rows = p->q.shape[2], dk = p->q.shape[3];
  const int64_t kv_heads = p->k.shape[1], keys = p->k.shape[2], width = kv_heads * dk;
  if ((double)keys * (double)width > INT_MAX) {
    snprintf(message, message_size, "calm counts elements of its cache in an int: this has too many");
    return ATTEST_UNSUPPORTED;
  }
  kvtype_t* const k = (kvtype_t*)malloc(2 * (size_t)(keys * width) * sizeof *k);
  kvtype_t* const v = k + keys * width;
  float* const att = (float*)malloc((size_t)keys * sizeof *att);
  if (k == NULL || att == NULL) {
    free(k), free(att);
    snprintf(message, message_size, "there is no memory for the cache");
    return ATTEST_UNSUPPORTED;
  }
  const float* q = (const float*)p->q.data;
  float* out = (float*)r->out.data;
  for (int64_t b = 0; b < p->q.shape[0]; ++b) {
    fill(k, &p->k, b), fill(v, &p->v, b);
    for (int64_t row = 0; row < heads * rows; ++row, q += dk, out += dk) {
      const int64_t first = row / rows / (heads / kv_heads) * dk;
      memset(att, 0xFF, (size_t)keys * sizeof *att); /* NaN where attn() is to write: forward()'s memory is not new */
      attn(out, att, (float*)q, k + first, v + first, (int)dk, (int)width, (int)seen(p, b, row % rows));
    }
  }
  free(k), free(att);
  return ATTEST_OK;
}
