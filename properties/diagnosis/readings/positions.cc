// What rows see by their positions: causal forms, and windows and tiles of a kernel's own.
#include <algorithm>

#include "core/problem/fields.h"
#include "core/problem/sight.h"
#include "core/support/infinity.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/masks.h"
#include "properties/diagnosis/readings/reading.h"

namespace attest {
namespace {

/// As far back as kernels look that keep to a window.
constexpr std::int64_t window_sizes[] = {16, 32, 48, 64, 96, 128, 256, 512, 1024, 2048, 4096};

/// Keys up to `behind` beyond the row's own place, counted from the first of them.
void add_diagonal(Readings& r, std::string words, std::int64_t behind) {
  const Case& c = r.problem();
  if (!can_hide_by_mask(c)) return;
  Case plain = c;
  plain.causal = Causal::none;
  Case other = only_hides(plain) ? with_boolean_mask(plain) : with_additive_mask(plain);
  const double hides = other.mask().dtype() == DType::boolean ? 0.0 : -infinity;
  other[Slot::mask] = mapped(other.mask(), [&](std::int64_t e, double old) {
    const auto [b, h, i, j] = other.mask().shape().index_of(e);
    return j > i + behind ? hides : old;
  });
  r.add(std::move(words), std::move(other));
}

/// With a mask in which row i sees key j where `sees` says so of (i, j, whether it saw it).
template <class Sees>
void add_sight(Readings& r, std::string words, std::int64_t size, Sees sees) {
  const Case& c = r.problem();
  if (!can_hide_by_mask(c)) return;
  Case other = only_hides(c) ? with_boolean_mask(c) : with_additive_mask(c);
  const bool boolean = other.mask().dtype() == DType::boolean;
  const double hides = boolean ? 0.0 : -infinity, shows = boolean ? 1.0 : 0.0;
  const Tensor before = other.mask();
  other[Slot::mask] = mapped(before, [&](std::int64_t e, double old) {
    const auto [b, h, i, j] = before.shape().index_of(e);
    const bool saw = old != hides, now = sees(i, j, e - j);
    return now == saw ? old : now ? shows : hides;
  });
  r.add_sized(std::move(words), size, std::move(other));
}

}  // namespace

void read_windows_and_tiles(Readings& r) {
  const Case& c = r.problem();
  const Extents& extents = r.extents();
  if (!can_hide_by_mask(c)) return;
  const Case told = only_hides(c) ? with_boolean_mask(c) : with_additive_mask(c);
  const double hides = told.mask().dtype() == DType::boolean ? 0.0 : -infinity;
  const auto saw = [&](std::int64_t first, std::int64_t j) { return told.mask()[first + j] != hides; };
  const std::int64_t N = extents.keys, more = std::max<std::int64_t>(N - extents.queries, 0);
  for (const std::int64_t window : window_sizes) {
    if (window >= extents.queries - 1 + more) continue;
    add_sight(r, "a row saw no keys more than # back", window, [&](std::int64_t i, std::int64_t j, std::int64_t first) {
      return saw(first, j) && j + window >= i + more;
    });
  }
  std::vector<std::int64_t> ends;  // behind the last key that a row sees
  for (std::int64_t first = 0; first < told.mask().elements(); first += N) {
    ends.push_back(N);
    while (ends.back() > 0 && !saw(first, ends.back() - 1)) --ends.back();
  }
  for (const std::int64_t tile : tile_sizes) {
    const auto up = [&](std::int64_t end) { return end > tile ? std::min((end + tile - 1) / tile * tile, N) : end; };
    if (tile >= N || tile > 128) continue;
    if (c.causal != Causal::none) {
      const std::int64_t shift = c.causal == Causal::bottom_right ? N - extents.queries : 0;
      Case plain = c;
      plain.causal = Causal::none;
      const Case open = only_hides(plain) ? with_boolean_mask(plain) : with_additive_mask(plain);
      Case other = open;
      other[Slot::mask] = mapped(open.mask(), [&](std::int64_t e, double old) {
        const auto [b, h, i, j] = open.mask().shape().index_of(e);
        return j < up(std::clamp<std::int64_t>(i + shift + 1, 0, N)) ? old : hides;
      });
      r.add_sized("a causal row saw its block of # keys to the end, from the second block on", tile, std::move(other));
    }
    if (c.mask().present()) {
      add_sight(r, "the keys that a row sees were rounded up to a multiple of #, from the second on", tile,
                [&](std::int64_t, std::int64_t j, std::int64_t first) {
                  const std::int64_t end = ends[static_cast<std::size_t>(first / N)];
                  return saw(first, j) || (j >= end && j < up(end));
                });
    }
  }
}

void read_causal_forms(Readings& r) {
  const Case& c = r.problem();
  const Extents& extents = r.extents();
  const bool hides_more = has_variant(c, window_variant.name) || has_variant(c, chunk_variant.name);
  const auto add_form = [&](std::string words, Causal causal) {
    Case other = c;
    if (causal != Causal::none && hides_more) {
      // Windows and chunks would go with it.
      if (c.dtype() == DType::f8_e4m3) return;
      other.causal = Causal::none;
      other = with_causal_written_out(std::move(other));
    }
    other.causal = causal;
    // Slopes count positions as it does.
    settle_alignment(other);
    r.add(std::move(words), std::move(other));
  };
  const std::int64_t more = extents.keys - extents.queries;
  if (c.causal == Causal::none) {
    add_form("it were causal, from the first keys on", Causal::top_left);
    if (more != 0) add_form("it were causal, up to the last keys", Causal::bottom_right);
    return;
  }
  const bool bottom = c.causal == Causal::bottom_right;
  add_form("there were no causal form", Causal::none);
  if (more != 0)
    add_form(
        bottom ? "the causal form were aligned to the first keys" : "the causal form were aligned to the last keys",
        bottom ? Causal::top_left : Causal::bottom_right);
  add_diagonal(r, "a causal row saw one key more", (bottom ? more : 0) + 1);
  add_diagonal(r, "a causal row did not see its own key", (bottom ? more : 0) - 1);
}

}  // namespace attest
