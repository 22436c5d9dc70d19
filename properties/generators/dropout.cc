// Dropout: weights that are dropped as a generator of random numbers drops them, and as none does: all, none, those of
// a key, of a row, or of whole tiles of keys.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "core/problem/fields.h"
#include "core/problem/sight.h"
#include "properties/generators/fill.h"
#include "properties/generators/recipe.h"
#include "properties/generators/stream.h"

namespace attest {
namespace {

enum class KeepKind : std::uint8_t {
  random,    ///< each weight by itself, about as many of them as the rate says
  all,       ///< nothing is dropped
  nothing,   ///< everything is
  key,       ///< as random, and one key in every row
  key_only,  ///< one key in every row, and nothing else
  row,       ///< as random, and all of one row
  one_kept,  ///< all but one weight of a row
  tile,      ///< all keys of a tile of 8 to 128, in every row
  one_tile,  ///< all keys but those
  count
};

/// Half of them random, as most that reach kernels are.
KeepKind some_kind(Stream& stream) {
  if (stream.one_in(2)) return KeepKind::random;
  return static_cast<KeepKind>(1 + stream.below(static_cast<std::int64_t>(KeepKind::count) - 1));
}

/// What is alike in all heads and batch entries.
struct Drops {
  KeepKind kind = KeepKind::random;
  double rate = 0;
  std::int64_t row = 0, key = 0, first = 0, last = 0;  ///< first, last: of the tile

  [[nodiscard]] bool keeps(std::int64_t i, std::int64_t j, std::int64_t one, Stream& stream) const {
    const bool kept = stream.unit() >= rate, in_tile = first <= j && j < last;
    switch (kind) {
      case KeepKind::all:
        return true;
      case KeepKind::nothing:
        return false;
      case KeepKind::key:
        return kept && j != key;
      case KeepKind::key_only:
        return j != key;
      case KeepKind::row:
        return kept && i != row;
      case KeepKind::one_kept:
        return j == one;
      case KeepKind::tile:
        return !in_tile;
      case KeepKind::one_tile:
        return in_tile;
      case KeepKind::random:
      case KeepKind::count:
        break;
    }
    return kept;
  }
};

Drops drawn_drops(const Case& c, Stream& stream) {
  const std::int64_t M = std::max<std::int64_t>(queries_of(c), 1), N = std::max<std::int64_t>(keys_of(c), 1);
  Drops drops{.kind = some_kind(stream)};
  // Rates at which next to nothing is dropped, or kept, tell little: half of the weights are then.
  drops.rate = c.dropout_p == 0 ? 0.25 : c.dropout_p < 0x1p-5 || c.dropout_p > 0.95 ? 0.5 : c.dropout_p;
  drops.row = stream.below(M), drops.key = stream.below(N);
  const std::int64_t tile = std::int64_t{8} << stream.below(5);
  drops.first = stream.below((N + tile - 1) / tile) * tile;
  drops.last = std::min(N, drops.first + tile);
  return drops;
}

/// Of one head of one batch entry, row by row. Where rows of q repeat, what they drop repeats with them, so that equal
/// rows have equal answers.
void fill_plane(const Drops& drops, std::int64_t keys, std::int64_t distinct, std::span<std::byte> plane,
                Stream& stream) {
  const auto N = static_cast<std::size_t>(keys), rows = plane.size() / N;
  for (std::size_t i = 0; i < rows; ++i) {
    const std::span<std::byte> row = plane.subspan(i * N, N);
    if (distinct > 0 && i >= static_cast<std::size_t>(distinct)) {
      std::ranges::copy(plane.subspan(i % static_cast<std::size_t>(distinct) * N, N), row.begin());
      continue;
    }
    const std::int64_t one = stream.below(keys);
    for (std::size_t j = 0; j < N; ++j)
      row[j] = std::byte{drops.keeps(static_cast<std::int64_t>(i), static_cast<std::int64_t>(j), one, stream)
                             ? std::uint8_t{1}
                             : std::uint8_t{0}};
  }
}

}  // namespace

void give_dropout(Recipe& r, Stream& stream) {
  constexpr double in_use[] = {0, 0.1, 0.1, 0.25, 0.5};
  r.dropout = true;
  give_variant(r.arguments, dropout_variant.name, axis_extents(r), stream);
  if (const std::int64_t turn = stream.below(8); turn < std::ssize(in_use))
    argument_in(r.arguments, &Problem::dropout_p) = in_use[turn];
}

void give_own_dropout(Recipe& r, Stream& stream) {
  constexpr std::array in_use{0.1, 0.1, 0.2, 0.5, 0.9};
  r.own_dropout = true;
  give_variant(r.arguments, dropout_variant.name, axis_extents(r), stream);
  const auto turn = static_cast<std::size_t>(stream.below(8));
  const double any = std::ldexp(1 + stream.unit(), -2 - static_cast<int>(stream.below(10)));
  argument_in(r.arguments, &Problem::dropout_p) = turn < in_use.size() ? in_use[turn] : any;
}

void fill_dropout(const Recipe& r, Case& c) {
  if (r.operation != Operation::attention) return;
  if (r.own_dropout) {
    ArgumentValues arguments = r.arguments;
    c.dropout_p = argument_in(arguments, &Problem::dropout_p);
    c.dropout_seed = static_cast<std::int64_t>(argument_in(arguments, &Problem::dropout_seed));
    return;
  }
  if (!r.dropout) return;
  Stream stream(r.seed ^ 0x64726f707065U);
  const std::int64_t M = queries_of(c), N = keys_of(c);
  // One mask for all of the entries, and for all heads, half of the time each; and where there would be too many.
  std::int64_t batch = stream.one_in(2) ? 1 : batch_of(c), heads = stream.one_in(2) ? 1 : heads_of(c);
  if (batch * heads * M * N > most_masked_of_large) batch = heads = 1;
  if (M * N > most_masked_of_large) return;
  ArgumentValues arguments = r.arguments;
  c.dropout_p = argument_in(arguments, &Problem::dropout_p);
  const Drops drops = drawn_drops(c, stream);
  Tensor keep(DType::boolean, {batch, heads, M, N});
  const auto plane = static_cast<std::size_t>(M * N);
  for (std::int64_t page = 0; plane > 0 && page < batch * heads; ++page)
    fill_plane(drops, N, r.distinct_queries, keep.bytes().subspan(static_cast<std::size_t>(page) * plane, plane),
               stream);
  c[Slot::keep] = std::move(keep);
}

}  // namespace attest
