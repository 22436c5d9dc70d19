#include <algorithm>

#include "property.h"
#include "selection.h"

namespace attest {
namespace {

/// The nearest extent that a manifest allows: at most `most`, a multiple of `multiple`, rounded up where that fits.
std::int64_t allowed(std::int64_t extent, std::int64_t multiple, const std::optional<std::int64_t>& most) {
  std::int64_t result = (extent + multiple - 1) / multiple * multiple;
  if (most && result > *most) result = std::max(multiple, *most / multiple * multiple);
  return result;
}

void limit_heads(const Manifest& m, const Case& c, const Extents& e, Selection& s) {
  const std::int64_t heads = allowed(e.heads, m.heads_multiple, m.max_heads);
  const bool attention = c.operation == Operation::attention;
  if (heads != e.heads) s.heads = cycled(e.heads, heads);
  if (!attention || (heads == e.heads && (m.grouped_query || e.kv_heads == e.heads))) return;
  // A key-value head of its own for every head, the one it read.
  s.kv_heads.clear();
  for (const std::int64_t head : s.heads) s.kv_heads.push_back(head / (e.heads / e.kv_heads));
}

void limit_dimensions(const Manifest& m, const Extents& e, Selection& s) {
  s.dk = cycled(e.dk, allowed(e.dk, m.head_dim_multiple, m.max_head_dim));
  const std::int64_t dv = m.value_dim_equals_head_dim ? static_cast<std::int64_t>(s.dk.size())
                          : e.dv == e.dk              ? static_cast<std::int64_t>(s.dk.size())
                                                      : allowed(e.dv, m.head_dim_multiple, m.max_head_dim);
  s.dv = cycled(e.dv, dv);
}

/// k and v become q, and what belongs to them follows: the keys' side of the mask, the rows of w_k and w_v.
void make_self_attention(Case& c, Selection& s) {
  c[Slot::k] = c.q();
  c[Slot::v] = c.q();
  s.c_k = s.c_q;
  s.c_v = s.c_q;
  const std::size_t tokens = std::min(s.queries.size(), s.keys.size());
  s.queries.resize(tokens);
  s.keys = s.queries;
}

/// Rows of w_k, w_v and columns of the mask brought to q's extents, so that one selection fits all. Without keys there
/// can be no queries either.
Case with_square_shapes(const Case& c) {
  const Extents e = extents_of(c);
  Selection s = everything(c);
  if (e.keys == 0) s.queries.clear();
  s.keys = cycled(e.keys, e.queries);
  s.c_k = cycled(e.c_k, e.c_q);
  s.c_v = cycled(e.c_v, e.c_q);
  return select(c, s);
}

bool is_self_attention(const Case& c) {
  return c.q() == c.k() && c.q() == c.v();
}

}  // namespace

Case project(Case c, const Manifest& m) {
  const bool self = c.operation == Operation::multihead && m.self_attention_only;
  if (self && !is_self_attention(c)) c = with_square_shapes(c);
  const Extents e = extents_of(c);
  Selection s = everything(c);
  limit_heads(m, c, e, s);
  limit_dimensions(m, e, s);
  s.queries = all_of(std::min(e.queries, m.max_queries.value_or(e.queries)));
  s.keys = all_of(std::min(e.keys, m.max_keys.value_or(e.keys)));
  keep_widths(c, s);
  if (self) make_self_attention(c, s);
  const bool fits = s == everything(c);
  Case projected = fits ? std::move(c) : select(c, s);
  const auto dk = static_cast<std::int64_t>(s.dk.size());
  if (!m.any_scale && !is_inverse_root(projected.scale, dk)) projected.scale = inverse_root(dk);
  return projected;
}

}  // namespace attest
