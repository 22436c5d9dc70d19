// Factors of q, k and v: which have some, what has one together, and how large they are.
#include "core/problem/descale.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/problem/fields.h"
#include "core/problem/selection.h"
#include "core/problem/sight.h"
#include "properties/generators/fill.h"
#include "properties/generators/recipe.h"
#include "properties/generators/stream.h"

namespace attest {
namespace {

/// What has a factor: a cache has those of k and v most often, and what computes in 8 bits of all three.
struct Which {
  bool q, k, v;
};
Which drawn_which(FactorKind kind, Stream& stream) {
  constexpr std::array<Which, 8> all{{{false, true, true},
                                      {true, true, true},
                                      {false, true, true},
                                      {true, true, true},
                                      {false, true, false},
                                      {false, false, true},
                                      {true, false, false},
                                      {true, true, false}}};
  Which which = all[static_cast<std::size_t>(stream.below(std::ssize(all)))];
  if (kind == FactorKind::of_both) which.q = which.k = true;
  if (kind == FactorKind::of_values) which.v = true;
  if (kind == FactorKind::of_scores) which.k = which.k || !which.q;
  if (kind == FactorKind::in_blocks) which.k = which.k || !which.v;
  return which;
}

/// Rows that have a factor together: a few, a tile, or all; of a production shape a tile, or what ends within one.
/// `several`: two blocks of two rows, and of more, at least.
std::int64_t drawn_block(std::int64_t rows, bool large, bool several, Stream& stream) {
  if (rows < 2 || (stream.one_in(2) && !several)) return 0;
  constexpr std::array<std::int64_t, 8> of_tiles{16, 32, 48, 64, 64, 96, 128, 128};
  if (large) return std::min(of_tiles[static_cast<std::size_t>(stream.below(std::ssize(of_tiles)))], rows - 1);
  const std::int64_t most = stream.one_in(2) ? std::min<std::int64_t>(rows, 8) : rows;
  const std::int64_t block = stream.one_in(3) ? std::int64_t{16} << stream.below(4) : 1 + stream.below(most);
  return several ? std::min(block, rows - 1) : block;
}

/// Around 2^octave; a power of two half of the time, and beside f64.
double drawn_factor(DType dtype, double octave, Stream& stream) {
  const double exact = std::exp2(octave + stream.uniform(-1, 1));
  return stream.one_in(2) || dtype == DType::f64 ? std::exp2(std::round(std::log2(exact)))
                                                 : static_cast<double>(static_cast<float>(exact));
}

Tensor drawn_factors(const Problem& c, Axis heads, std::int64_t blocks, double octave, Stream& stream) {
  const AxisExtents extents = axis_extents(c);
  const std::int64_t batch = batch_of(c), count = extents[static_cast<std::size_t>(heads)];
  const bool for_each_head = stream.one_in(2), for_each_entry = stream.one_in(2);
  Tensor factors(DType::f32, {for_each_entry ? batch : 1, for_each_head ? count : 1, blocks});
  for (std::int64_t e = 0; e < factors.elements(); ++e) factors.set(e, drawn_factor(c.dtype(), octave, stream));
  return factors;
}

}  // namespace

void fill_descale(const Recipe& r, Case& c) {
  if (r.operation != Operation::attention || r.descale == FactorKind::none) return;
  Stream stream(r.seed ^ 0x6465736361U);
  const Which which = drawn_which(r.descale, stream);
  const bool several = r.descale == FactorKind::in_blocks;
  const double reach = stream.one_in(8) ? 10 : 4, of_k = which.k ? stream.uniform(-reach, reach) : 0;
  // What the one makes of scores the other takes from them, so that more than the largest of them is seen.
  const double of_both = which.q && which.k ? -of_k : 0;
  const double octave = which.q == which.k ? of_k : of_k / 4, of_v = stream.uniform(-reach, reach);
  c.q_descale_block = which.q ? drawn_block(r.queries, r.large, several, stream) : 0;
  c.kv_descale_block = which.k || which.v ? drawn_block(r.keys, r.large, several, stream) : 0;
  const AxisExtents extents = axis_extents(c);
  const std::int64_t rows = extents[static_cast<std::size_t>(Axis::q_blocks)],
                     keys = extents[static_cast<std::size_t>(Axis::kv_blocks)];
  if (which.q) c[Slot::q_descale] = drawn_factors(c, Axis::heads, rows, of_both, stream);
  // Both have theirs in blocks, or one by the head: a cache may have those of keys so, and of values by the token.
  const std::int64_t by_head = which.k && which.v ? stream.below(4) : 3;
  if (which.k) c[Slot::k_descale] = drawn_factors(c, Axis::kv_heads, by_head == 0 ? 1 : keys, octave, stream);
  if (which.v) c[Slot::v_descale] = drawn_factors(c, Axis::kv_heads, by_head == 1 ? 1 : keys, of_v, stream);
  settle_blocks(c);
}

}  // namespace attest
