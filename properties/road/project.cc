#include <algorithm>
#include <optional>
#include <utility>

#include "core/problem/selection.h"
#include "properties/arrangement/multihead_cases.h"
#include "properties/catalogue/property.h"
#include "properties/generators/recipe.h"
#include "properties/road/case_budget.h"
#include "properties/road/fit_extents.h"
#include "properties/road/fit_form.h"

namespace attest {
namespace {

/// k and v become q. Rows of w_k, w_v and columns of the mask are brought to q's extents, the tokens repeated in turn
/// or cropped. Without keys there can be no queries either.
Case as_self_attention(const Case& c) {
  const Extents e = extents_of(c);
  Selection s = everything(c);
  if (e.keys == 0) s.queries.clear();
  s.keys = cycled(e.keys, static_cast<std::int64_t>(s.queries.size()));
  s.c_k = cycled(e.c_k, e.c_q);
  s.c_v = cycled(e.c_v, e.c_q);
  Case square = select(c, s);
  square[Slot::k] = square[Slot::v] = square.q();
  return square;
}

/// Whether the theorem that the case was drawn for speaks of it; of none there is nothing to miss.
bool meets_hypotheses(const Case& c) {
  if (!c.provenance.property) return true;
  const auto& all = catalogue();
  const auto found = std::ranges::find(all, *c.provenance.property, &Property::name);
  return found == all.end() || (*found)->misses(c).empty();
}

/// The case with extents within the limits; marked and as it was where they would make it too large.
Case resized(const Case& c, const Manifest& m, bool at_edges) {
  const Extents from = extents_of(c), to = fitting_extents(c, m, at_edges);
  if (from == to) return c;
  if (std::string why = why_over_budget(c.operation, from, to); !why.empty()) {
    Case marked = c;
    marked.provenance.over_budget = std::move(why);
    return marked;
  }
  return with_extents(c, to);
}

}  // namespace

Case project(Case c, const Manifest& m) {
  fit_kv_dtypes(c, m);
  fit_sequences(c, m);
  fit_caches(c, m);
  const bool fits = why_unsupported(m, c).empty(), has_tiles = edges_of(m) != Tiles();
  if (fits && !has_tiles) return c;
  const Extents drawn = extents_of(c);
  const bool speaks_of_drawn = meets_hypotheses(c), multihead = c.operation == Operation::multihead;
  const Case square = multihead && m.self_attention_only && !is_self_attention(c) ? as_self_attention(c) : c;
  std::optional<Case> fitted;  // the first within the limits, of which the theorem does not speak
  for (const bool at_edges : {true, false}) {
    if (at_edges && !has_tiles) continue;
    const Case sized = resized(square, m, at_edges);
    if (sized.provenance.over_budget) {
      if (at_edges) continue;
      c.provenance.over_budget = sized.provenance.over_budget;
      return c;
    }
    std::optional<Case> found;
    const bool taken = try_forms(sized, m, [&](Case candidate) {
      fit_rest(candidate, m);
      if (!why_unsupported(m, candidate).empty()) return false;
      const Extents e = extents_of(candidate);
      if (drawn != e) {
        drop_kinds(candidate, "shape:");
        add_kind(candidate, "shape:", shape_name(e.queries, e.keys, e.dk, e.dv));
      }
      found = std::move(candidate);
      if (speaks_of_drawn && meets_hypotheses(*found)) return true;
      if (!fitted) fitted = found;
      return !speaks_of_drawn;
    });
    if (taken) return std::move(*found);
  }
  if (fitted && !speaks_of_drawn) return std::move(*fitted);
  // No case within the limits is one of the theorem. What is left is skipped by the name of the limit that is in the
  // way: one of form where the extents can be met, else one of extents.
  Case sized = resized(square, m, /*at_edges=*/false);
  fit_rest(sized, m);
  return meets_hypotheses(sized) ? sized : c;
}

}  // namespace attest
