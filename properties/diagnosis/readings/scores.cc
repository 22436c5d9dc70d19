// The scale of scores, and weights that are equal.
#include <cmath>
#include <numbers>

#include "core/problem/fields.h"
#include "core/problem/sight.h"
#include "core/support/infinity.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/masks.h"
#include "properties/diagnosis/readings/reading.h"
#include "properties/diagnosis/variants/alibi_misreadings.h"

namespace attest {
namespace {

void add_scale(Readings& r, std::string words, double scale) {
  const Case& c = r.problem();
  if (!(scale > 0) || scale == infinity || scale == c.scale) return;
  Case other = c;
  other.scale = scale;
  r.add(std::move(words), std::move(other));
}

/// Capped or not, so many times as large.
void add_scores(Readings& r, std::string words, double times) {
  const Case& c = r.problem();
  Case other = with_slopes_times(c, times);
  other.scale *= times, other.softcap *= times;
  const auto valid = [](double x, double before) { return before == 0 || (x > 0 && x < infinity); };
  if (valid(other.scale, c.scale) && valid(other.softcap, c.softcap)) r.add(std::move(words), std::move(other));
}

void read_scales(Readings& r) {
  const Case& c = r.problem();
  const Extents& extents = r.extents();
  add_scale(r, "q·k were not scaled", 1);
  add_scale(r, "the scale were 1/sqrt(dk), whatever is asked", inverse_root(extents.dk));
  add_scale(r, "the scale were applied twice", c.scale * c.scale);
  add_scale(r, "the scale were 1/dk", 1 / static_cast<double>(extents.dk));
  add_scale(r, "the scale were 1/sqrt(dv)", inverse_root(extents.dv));
  add_scale(r, "the scale were 1/sqrt(heads·dk)", inverse_root(extents.heads * extents.dk));
  if (only_hides(c)) {
    add_scores(r, "powers of 2 stood for powers of e", std::numbers::ln2);
    add_scores(r, "scores were multiplied by log2(e), and powers of e taken", std::numbers::log2e);
  }
}

/// Three that differ in what becomes of a mask.
void read_equal_weights(Readings& r) {
  const Case& c = r.problem();
  const Extents& extents = r.extents();
  Case even = c;
  even[Slot::q] = mapped(c.q(), [](std::int64_t, double) { return 0.0; });
  Case hides = even;
  drop_variant(hides, alibi_variant.name);
  if (c.mask().present() && c.mask().dtype() != DType::boolean)
    hides[Slot::mask] = mapped(c.mask(), [](std::int64_t, double old) { return old == -infinity ? old : 0.0; });
  r.add("all visible keys weighed the same", std::move(hides));
  r.add("all scores were equal before the mask is added", even);
  // A row that sees none keeps to what the manifest says of it.
  const Shape shape{extents.batch, extents.heads, extents.queries, extents.keys};
  Tensor shown(DType::boolean, shape);
  std::int64_t first = 0;
  for (std::int64_t row = 0; row < extents.batch * extents.heads * extents.queries; ++row, first += extents.keys) {
    bool sees = false;
    for (std::int64_t j = 0; j < extents.keys; ++j) {
      const auto [b, h, i, key] = shape.index_of(first + j);
      sees = sees || !hidden(c, b, h, i, key);
    }
    for (std::int64_t j = 0; j < extents.keys; ++j) shown.set(first + j, sees ? 1.0 : 0.0);
  }
  even[Slot::mask] = std::move(shown);
  drop_positions(even);
  // Nothing else of the weights is looked at, either.
  for (const Variant& variant : {sink_variant, dropout_variant, alibi_variant}) drop_variant(even, variant.name);
  r.add("all keys weighed the same, hidden ones too", std::move(even));
}

}  // namespace

void read_scores(Readings& r) {
  read_scales(r);
  read_equal_weights(r);
}

}  // namespace attest
