// Other keys than those that there are. What hides by position, and slopes, count keys, so they become a mask first.
#include <algorithm>
#include <numeric>

#include "core/problem/fields.h"
#include "core/problem/sight.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/masks.h"
#include "properties/diagnosis/readings/reading.h"
#include "properties/diagnosis/variants/alibi_misreadings.h"

namespace attest {
namespace {

bool has_slopes(const Case& c) {
  return c[Slot::alibi_slopes].present();
}

/// With that many keys and values of zeros behind the last, which every row sees, from as far as they are.
Case padded(const Case& c, const Case& counted, std::int64_t more) {
  const Extents extents = extents_of(c);
  Indices chosen = all_of(extents.keys);
  chosen.insert(chosen.end(), static_cast<std::size_t>(more), 0);
  Case other = with_keys(counted, chosen);
  const std::int64_t keys = extents.keys + more;
  for (const Slot slot : {Slot::k, Slot::v}) {
    const std::int64_t width = other[slot].shape()[3];
    other[slot] =
        mapped(other[slot], [&](std::int64_t e, double old) { return e / width % keys < extents.keys ? old : 0.0; });
  }
  if (other.mask().present()) {
    const double shows = other.mask().dtype() == DType::boolean ? 1.0 : 0.0;
    const Shape shape = other.mask().shape();
    other[Slot::mask] = mapped(other.mask(), [&](std::int64_t e, double old) {
      const auto [b, h, i, j] = shape.index_of(e);
      return j < extents.keys ? old : has_slopes(c) ? slope_term(c, b, h, i, j) : shows;
    });
  }
  return other;
}

}  // namespace

void read_keys(Readings& r) {
  const Case& c = r.problem();
  const Extents& extents = r.extents();
  const std::int64_t N = extents.keys;
  if (N < 1) return;
  const bool by_position = hides_by_position(c);
  const Case unsloped = with_slopes_as_mask(c);
  if (by_position && !has_slopes(c) && c.dtype() == DType::f8_e4m3) return;
  const Case counted = by_position ? with_causal_written_out(unsloped) : unsloped;
  const auto add_keys = [&](std::string words, const Indices& chosen, std::int64_t size = 0) {
    if (!chosen.empty()) r.add_sized(std::move(words), size, with_keys(counted, chosen));
  };
  const auto range = [](std::int64_t first, std::int64_t last) {
    Indices some(static_cast<std::size_t>(std::max<std::int64_t>(last - first, 0)));
    std::iota(some.begin(), some.end(), first);
    return some;
  };
  add_keys("the last key were not there", range(0, N - 1));
  add_keys("the first key were not there", range(1, N));
  Case zero = c;
  zero[Slot::k] = mapped(c.k(), [&](std::int64_t e, double old) { return e / extents.dk % N == N - 1 ? 0.0 : old; });
  r.add("the last key were zeros", std::move(zero));
  if (N > extents.queries) add_keys("there were no more keys than queries", range(0, extents.queries));
  for (const std::int64_t tile : tile_sizes) {
    const std::int64_t whole = N - N % tile;
    if (N > tile) {
      add_keys("there were # keys at most", range(0, tile), tile);
      add_keys("the first # keys were not there", range(tile, N), tile);
    }
    if (N > tile) {
      Indices without = range(0, tile), again = range(0, N);
      for (const std::int64_t j : range(std::min(2 * tile, N), N)) without.push_back(j);
      for (const std::int64_t j : range((N - 1) / tile * tile, N)) again.push_back(j);
      add_keys("the second # keys were not there", without, tile);
      add_keys("the last tile of # keys counted twice", again, tile);
    }
    if (whole == N) continue;
    if (whole > 0) add_keys("keys behind the last whole # were not there", range(0, whole), tile);
    if (N > tile) {
      Indices twice = range(0, N);
      for (const std::int64_t j : range(N - tile, whole)) twice.push_back(j);
      add_keys("keys that the last # share with those before counted twice", twice, tile);
    }
    r.add_sized("keys of zeros filled up a multiple of #", tile, padded(c, counted, whole + tile - N));
  }
}

}  // namespace attest
