#include <algorithm>
#include <utility>

#include "core/problem/selection.h"
#include "properties/catalogue/property.h"
#include "properties/generators/recipe.h"
#include "properties/language/multihead_cases.h"
#include "properties/road/case_budget.h"

namespace attest {
namespace {

/// The nearest extent that a manifest allows: at most `most`, a multiple of `multiple`, rounded up where that fits.
std::int64_t allowed(std::int64_t extent, std::int64_t multiple, const std::optional<std::int64_t>& most) {
  const std::int64_t result = (extent + multiple - 1) / multiple * multiple;
  return most && result > *most ? std::max(multiple, *most / multiple * multiple) : result;
}

/// The extents that the manifest allows in the place of `e`; widths of a model are seen to by keep_widths.
Extents limited(const Manifest& m, const Extents& e, bool multihead) {
  Extents limited = e;
  limited.heads = allowed(e.heads, m.heads_multiple, m.max_heads);
  // A key-value head of its own for every head where groups are not known, or their number has changed.
  if (!multihead && (!m.grouped_query || limited.heads != e.heads)) limited.kv_heads = limited.heads;
  limited.dk = allowed(e.dk, m.head_dim_multiple, m.max_head_dim);
  const bool one_width = m.value_dim_equals_head_dim || e.dv == e.dk;
  limited.dv = one_width ? limited.dk : allowed(e.dv, m.head_dim_multiple, m.max_head_dim);
  limited.queries = allowed(e.queries, 1, m.max_queries);
  limited.keys = allowed(e.keys, 1, m.max_keys);
  if (multihead && m.self_attention_only) limited.queries = limited.keys = std::min(limited.queries, limited.keys);
  return limited;
}

/// The widths of a model as keep_widths ties them.
Extents with_widths(const Extents& from, Extents to) {
  for (std::int64_t* const width : {&to.c_q, &to.c_k, &to.c_v, &to.d_o})
    if (*width == from.heads * from.dk) *width = to.heads * to.dk;
  return to;
}

Selection selected(const Case& c, const Extents& from, const Extents& to) {
  Selection s = everything(c);
  s.heads = cycled(from.heads, to.heads);
  if (to.kv_heads != from.kv_heads) {
    s.kv_heads.clear();
    for (const std::int64_t head : s.heads) s.kv_heads.push_back(head / (from.heads / from.kv_heads));
  }
  s.dk = cycled(from.dk, to.dk);
  s.dv = cycled(from.dv, to.dv);
  s.queries = all_of(to.queries);
  s.keys = all_of(to.keys);
  keep_widths(c, s);
  return s;
}

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

}  // namespace

Case project(Case c, const Manifest& m) {
  const bool multihead = c.operation == Operation::multihead;
  const Extents drawn = extents_of(c);
  if (multihead && m.self_attention_only && !is_self_attention(c)) c = as_self_attention(c);
  const Extents from = extents_of(c), to = limited(m, from, multihead);
  if (from != to) {
    if (std::string why = why_over_budget(c.operation, from, with_widths(from, to)); !why.empty()) {
      c.provenance.over_budget = std::move(why);
      return c;
    }
    c = select(c, selected(c, from, to));
  }
  if (drawn != to) {
    drop_kinds(c, "shape:");
    add_kind(c, "shape:", shape_name(to.queries, to.keys, to.dk, to.dv));
  }
  if (!m.any_scale && !is_inverse_root(c.scale, to.dk)) c.scale = inverse_root(to.dk);
  return c;
}

}  // namespace attest
