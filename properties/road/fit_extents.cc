#include "properties/road/fit_extents.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/kernel/limits.h"
#include "properties/arrangement/arguments.h"
#include "properties/arrangement/multihead_cases.h"

namespace attest {
namespace {

/// `heads` of groups of `size`, near to `kv_heads` groups; nothing where the limits allow none.
std::optional<std::int64_t> groups_of(const Manifest& m, std::int64_t size, std::int64_t kv_heads) {
  const std::int64_t step = std::max<std::int64_t>(1, m.heads_multiple / std::gcd(m.heads_multiple, size));
  std::int64_t groups = (kv_heads + step - 1) / step * step;
  if (m.max_heads && groups * size > *m.max_heads) groups = *m.max_heads / size / step * step;
  return groups > 0 ? std::optional(groups) : std::nullopt;
}

void fit_heads(const Manifest& m, bool multihead, const Extents& e, Extents& to) {
  if (multihead || m.group_sizes.empty()) {
    const AllowedExtents allowed{.multiple = m.heads_multiple, .least = 1, .most = m.max_heads};
    to.heads = allowed.nearest(e.heads);
    // A key-value head of its own for every head where groups are not known, or their number has changed.
    if (!multihead && (!m.grouped_query || to.heads != e.heads)) to.kv_heads = to.heads;
    return;
  }
  if (allows_heads(m, e.heads, e.kv_heads)) return;
  const std::int64_t size = e.heads / e.kv_heads;
  // The sizes from this one on, then the smaller ones from the largest down.
  std::vector<std::int64_t> sizes = m.group_sizes;
  std::ranges::sort(sizes, {}, [&](std::int64_t s) { return s >= size ? s - size : (std::int64_t{1} << 62) - s; });
  for (const std::int64_t s : sizes) {
    const auto groups = groups_of(m, s, e.kv_heads);
    if (!groups) continue;
    to.kv_heads = *groups;
    to.heads = *groups * s;
    return;
  }
}

void fit_widths(const Case& c, const Manifest& m, const Extents& e, Extents& to) {
  const AllowedExtents values = allowed_value_dims(m);
  to.dk = allowed_head_dims(m).nearest(e.dk);
  const bool multihead = c.operation == Operation::multihead;
  // Without an output projection heads * dv is d_o.
  const bool one_width =
      m.value_dim_equals_head_dim || e.dv == e.dk || (multihead && m.model_dim_is_heads && !c[Slot::w_o].present());
  to.dv = one_width && values.has(to.dk) ? to.dk : values.nearest(e.dv);
  if (!multihead) return;
  const std::int64_t width = to.heads * to.dk;
  for (std::int64_t* const tied : {&to.c_q, &to.c_k, &to.c_v, &to.d_o})
    if (*tied == e.heads * e.dk) *tied = width;
  if (!m.model_dim_is_heads) return;
  to.c_q = to.d_o = width;
  if (is_self_attention(c)) to.c_k = to.c_v = width;
}

/// Allowed lengths by turns: the nearest, or where that was raised the one after it.
std::int64_t raised(const Case& c, const AllowedExtents& allowed, std::int64_t extent) {
  if (extent == 0) return 0;
  const std::int64_t near = allowed.nearest(extent);
  if (near <= extent || argument(c, "units", 3) != 0) return near;
  return allowed.from(near + 1).value_or(near);
}

void fit_lengths(const Case& c, const Manifest& m, const Extents& e, Extents& to) {
  const AllowedExtents queries = allowed_queries(m), keys = allowed_keys(m), tokens = allowed_tokens(m);
  const bool self = c.operation == Operation::multihead && m.self_attention_only;
  if (m.same_lengths || self) {
    const bool none = e.queries == 0 || e.keys == 0;
    // One long extent makes two: beyond 512 the shorter one has a say.
    constexpr std::int64_t longest = 512;
    const auto [shorter, longer] = std::minmax(e.queries, e.keys);
    const std::int64_t wanted = none ? 0 : self ? shorter : std::max(shorter, std::min(longer, longest));
    to.queries = to.keys = raised(c, tokens, wanted);
    return;
  }
  if (e.queries == e.keys && tokens.from(e.queries)) {
    to.queries = to.keys = raised(c, tokens, e.queries);
    return;
  }
  to.queries = e.queries == 0 ? 0 : queries.nearest(e.queries);
  to.keys = e.keys == 0 ? 0 : keys.nearest(e.keys);
  if (to.queries == 0 || to.keys == 0) return;
  if (e.queries < e.keys && to.queries >= to.keys) to.keys = keys.from(to.queries + 1).value_or(to.keys);
  if (e.queries > e.keys && to.queries <= to.keys) to.queries = queries.from(to.keys + 1).value_or(to.queries);
}

/// Beyond it an edge costs more than it shows.
constexpr std::int64_t longest_edge = 8192;
/// And the tiles of more keys than these where there are as many queries, which show in cases of few queries too: a law
/// that reads weights calls the kernel once for each few keys.
constexpr std::int64_t longest_square_tile = 256;

bool is_at_edge(std::int64_t extent, std::int64_t tile) {
  return (extent + 1) % tile <= 2 && extent + 1 >= tile;
}

/// An edge of the first two of some of the tiles; the extent as it is where it is at one, or where limits let no edge
/// be.
std::int64_t at_edge(const Case& c, const std::string& name, std::span<const std::int64_t> tiles,
                     const AllowedExtents& allowed, std::int64_t extent) {
  if (tiles.empty() || extent == 0) return extent;
  const std::int64_t tile = tiles[static_cast<std::size_t>(argument(c, name, std::ssize(tiles)))];
  if (is_at_edge(extent, tile)) return extent;
  const std::int64_t edge = tile * (1 + argument(c, name + "-tiles", 2)) + argument(c, name + "-side", 3) - 1;
  const std::int64_t near = allowed.nearest(edge);
  return is_at_edge(near, tile) ? near : extent;
}

void move_to_edges(const Case& c, const Manifest& m, Extents& to) {
  const Tiles tiles = edges_of(m);
  // Of a drawn case alone: what somebody captured has the lengths that it has.
  if (!c.provenance.kinds || argument(c, "tile-edge", 8) != 0) return;
  if (to.queries == to.keys) {
    std::vector<std::int64_t> of_both = tiles.keys.empty() ? tiles.queries : tiles.keys;
    const bool always_square = m.same_lengths || m.self_attention_only;
    if (!always_square) std::erase_if(of_both, [](std::int64_t tile) { return tile > longest_square_tile; });
    to.queries = to.keys = at_edge(c, "key-tile", of_both, allowed_tokens(m), to.keys);
    return;
  }
  to.queries = at_edge(c, "query-tile", tiles.queries, allowed_queries(m), to.queries);
  to.keys = at_edge(c, "key-tile", tiles.keys, allowed_keys(m), to.keys);
}

}  // namespace

Tiles edges_of(const Manifest& m) {
  Tiles edges = m.tiles;
  const auto add = [](const ExtentRange& range, std::vector<std::int64_t>& to) {
    if (range.least > 1) to.push_back(range.least);
    if (range.most > 1 && range.most != any_extent) to.push_back(range.most + 1);
  };
  for (const auto& [dtype, paths] : m.arithmetic.paths) {
    for (const ArithmeticPath& path : paths) {
      add(path.queries, edges.queries);
      add(path.keys, edges.keys);
    }
  }
  // Parts of a key each, with one more and with one that gets none; and parts of a whole tile each.
  for (const std::int64_t parts : m.tiles.splits) {
    if (parts == 1) continue;
    edges.keys.push_back(parts);
    for (const std::int64_t tile : m.tiles.keys)
      if (parts <= longest_edge / tile) edges.keys.push_back(parts * tile);
  }
  return edges;
}

Extents fitting_extents(const Case& c, const Manifest& m, bool at_edges) {
  const Extents e = extents_of(c);
  Extents to = e;
  fit_heads(m, c.operation == Operation::multihead, e, to);
  fit_widths(c, m, e, to);
  fit_lengths(c, m, e, to);
  if (at_edges) move_to_edges(c, m, to);
  return to;
}

Case with_extents(const Case& c, const Extents& to) {
  const Extents from = extents_of(c);
  Selection s = everything(c);
  const bool in_groups = to.kv_heads > 0 && to.kv_heads < to.heads && to != from;
  if (in_groups) {
    const std::int64_t size = to.heads / to.kv_heads, old_size = from.heads / from.kv_heads;
    s.kv_heads = cycled(from.kv_heads, to.kv_heads);
    s.heads.clear();
    for (std::int64_t head = 0; head < to.heads; ++head)
      s.heads.push_back(head / size % from.kv_heads * old_size + head % size % old_size);
  } else {
    s.heads = cycled(from.heads, to.heads);
    if (to.kv_heads != from.kv_heads) {
      s.kv_heads.clear();
      for (const std::int64_t head : s.heads) s.kv_heads.push_back(head / (from.heads / from.kv_heads));
    }
  }
  s.dk = cycled(from.dk, to.dk);
  s.dv = cycled(from.dv, to.dv);
  s.queries = cycled(from.queries, to.queries);
  s.keys = cycled(from.keys, to.keys);
  s.c_q = cycled(from.c_q, to.c_q);
  s.c_k = cycled(from.c_k, to.c_k);
  s.c_v = cycled(from.c_v, to.c_v);
  s.d_o = cycled(from.d_o, to.d_o);
  return select(c, s);
}

}  // namespace attest
