// The long cases: a dozen that every run of a property of theirs begins with, of sizes that few drawn cases have. What
// a kernel does from some number of keys on (a second tile, a split, a tail, an index) shows in these or in none.
#include <algorithm>
#include <iterator>

#include "properties/generators/draw.h"
#include "properties/generators/marked_keys.h"
#include "properties/generators/stream.h"

namespace attest {
namespace {

struct Sizes {
  std::int32_t batch, heads, kv_heads, queries, keys, dk, dv;
};

/// What is fixed of a case. Its numbers are drawn.
struct LongCase {
  Sizes sizes;
  MaskKind mask = MaskKind::none;
  bool boolean_mask = false;
  Causal causal = Causal::none;
  ScoreKind scores = ScoreKind::gaussian;
  /// With 4 columns and a scale of 1 scores have a deviation of 2, so that some dozens of keys hold most of the weight
  /// and none of them all of it; with 1/sqrt(dk) it is 1, and every key counts.
  ScaleKind scale = ScaleKind::inverse_root;
};

/// Decoding (few queries, many keys) but for three that prefill. Lengths lie at, behind and between multiples of the
/// usual tiles; 320 queries, 8192 keys, 256 columns and 8 heads are reached in every run.
constexpr LongCase long_cases[] = {
    {.sizes = {1, 1, 1, 1, 8192, 16, 8}},
    {.sizes = {1, 1, 1, 320, 320, 4, 4}, .causal = Causal::top_left},
    {.sizes = {1, 1, 1, 160, 600, 4, 4}, .causal = Causal::bottom_right},
    {.sizes = {1, 1, 1, 64, 601, 4, 4}, .scale = ScaleKind::one},
    {.sizes = {1, 8, 2, 1, 777, 16, 8}},
    {.sizes = {1, 2, 2, 1, 1023, 128, 64}},
    {.sizes = {1, 4, 2, 1, 2049, 32, 16}, .causal = Causal::bottom_right},
    {.sizes = {2, 2, 1, 1, 4096, 8, 4}, .mask = MaskKind::padding, .boolean_mask = true},
    {.sizes = {1, 1, 1, 2, 1537, 4, 4}, .mask = MaskKind::random, .scale = ScaleKind::one},
    {.sizes = {1, 1, 1, 3, 1024, 8, 8}, .mask = MaskKind::bias, .scores = ScoreKind::gaussian_tenth},
    {.sizes = {2, 2, 1, 5, 640, 8, 4},
     .mask = MaskKind::middle_block,
     .boolean_mask = true,
     .scores = ScoreKind::duplicate_keys},
    {.sizes = {1, 1, 1, 1, 300, 256, 256}},
    // Of a model's sizes with few keys and many columns, as test-suites have them: no dozen keys average their errors
    // away, so these need more of a tolerance than the others, and a tolerance to copy must have seen some.
    {.sizes = {1, 2, 2, 64, 16, 64, 64}},
    {.sizes = {1, 2, 2, 64, 16, 128, 128}},
    {.sizes = {1, 2, 1, 128, 16, 128, 128}},
    {.sizes = {1, 1, 1, 64, 64, 128, 128}}};

/// They follow each other, so that each of n shards has its share of them. A kernel that fails everywhere has failed
/// before them, in cases that cost nothing.
constexpr std::int64_t first_long = 16;

}  // namespace

DrawnAttention& DrawnAttention::long_among_the_first() {
  const std::int64_t which = k_ - first_long;
  if (recipe_.large || which < 0 || which >= std::ssize(long_cases)) return *this;
  const LongCase& one = long_cases[which];
  Recipe r;
  r.dtype = recipe_.dtype, r.seed = recipe_.seed;
  const Sizes& sizes = one.sizes;
  r.batch = sizes.batch, r.heads = sizes.heads, r.kv_heads = sizes.kv_heads;
  r.queries = sizes.queries, r.keys = sizes.keys, r.dk = sizes.dk, r.dv = sizes.dv;
  r.scores = one.scores, r.scale = one.scale;
  r.mask = one.mask, r.boolean_mask = one.boolean_mask, r.causal = one.causal;
  Stream stream(r.seed ^ 0x1096ca5e);
  // The others are ordinary, and stay so.
  if (r.keys >= 300) mark_keys(r, stream);
  recipe_ = r;
  return *this;
}

}  // namespace attest
