#include "reports/results/shapes_beyond.h"

#include <fmt/format.h>

#include <bit>
#include <optional>

#include "core/kernel/limits.h"

namespace attest {
namespace {

constexpr std::int64_t most_products = 1 << 28;

/// The power of two above it, or the nearest that the manifest has; nothing where that is no more.
std::optional<std::int64_t> beyond(const AllowedExtents& allowed, std::int64_t judged) {
  const auto power = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(judged) + 1));
  const std::int64_t found = allowed.nearest(power);
  return found > judged && allowed.has(found) ? std::optional(found) : std::nullopt;
}

/// So many heads, or the next that may be; each with its own keys and values, or in the groups that are allowed.
bool give_heads(Extents& e, const Manifest& m, std::int64_t least) {
  for (std::int64_t heads = least; heads <= m.max_heads.value_or(least + 64 * m.heads_multiple); ++heads) {
    for (std::int64_t kv_heads = heads; kv_heads >= 1; --kv_heads) {
      if (heads % m.heads_multiple != 0 || heads % kv_heads != 0 || !allows_heads(m, heads, kv_heads)) continue;
      e.heads = heads, e.kv_heads = kv_heads;
      return true;
    }
  }
  return false;
}

/// Whether the rest of the shape, with these extents, is the kernel's to answer and not too large.
bool fits(const Extents& e, const Manifest& m) {
  return allowed_queries(m).has(e.queries) && allowed_keys(m).has(e.keys) && allowed_head_dims(m).has(e.dk) &&
         allowed_value_dims(m).has(e.dv) && (!m.same_lengths || e.queries == e.keys) &&
         static_cast<double>(e.heads * e.queries) * static_cast<double>(e.keys * e.dk) <=
             static_cast<double>(most_products);
}

}  // namespace

std::vector<Extents> shapes_beyond(const Reach& judged, const Manifest& m, std::optional<std::int64_t> both) {
  Extents usual;
  usual.batch = 1;
  if (!give_heads(usual, m, 1)) return {};
  usual.queries = allowed_queries(m).nearest(64), usual.keys = allowed_keys(m).nearest(64);
  if (m.same_lengths) usual.queries = usual.keys = allowed_tokens(m).nearest(64);
  usual.dk = usual.dv = allowed_head_dims(m).nearest(64);
  if (!allowed_value_dims(m).has(usual.dv)) usual.dv = allowed_value_dims(m).nearest(64);
  std::vector<Extents> found;
  const auto add = [&](const Extents& e) {
    if (!fits(e, m)) return false;
    found.push_back(e);
    return true;
  };
  if (both && *both <= most_products) {
    Extents e = usual;
    const auto queries = beyond(allowed_queries(m), *both), keys = beyond(allowed_keys(m), *both);
    if (queries && keys) e.queries = *queries, e.keys = *keys, add(e);
  }
  if (const auto queries = beyond(m.same_lengths ? allowed_tokens(m) : allowed_queries(m), judged.queries)) {
    Extents e = usual;
    // As many keys, where that is not too much: so models are trained.
    e.queries = *queries, e.keys = allowed_keys(m).nearest(*queries);
    if (!add(e) && !m.same_lengths) e.keys = usual.keys, add(e);
  }
  if (const auto keys = beyond(allowed_keys(m), judged.keys); keys && !m.same_lengths) {
    Extents e = usual;
    e.queries = allowed_queries(m).nearest(1), e.keys = *keys;
    add(e);
  }
  Extents wide = usual;
  if (!m.same_lengths) wide.queries = allowed_queries(m).nearest(16), wide.keys = allowed_keys(m).nearest(16);
  if (const auto dk = beyond(allowed_head_dims(m), judged.dk)) {
    const bool same = usual.dv == usual.dk;
    wide.dk = *dk;
    if (same && allowed_value_dims(m).has(*dk)) wide.dv = *dk;
  }
  const auto heads = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(judged.heads) + 1));
  if (!give_heads(wide, m, heads)) give_heads(wide, m, judged.heads + 1);
  if (wide.dk > judged.dk || wide.heads > judged.heads) add(wide);
  return found;
}

std::string shape_option(const Extents& e) {
  return fmt::format("--shape={},{},{},{},{},{}{}", e.batch, e.heads, e.kv_heads, e.queries, e.keys, e.dk,
                     e.dv == e.dk ? "" : fmt::format(",{}", e.dv));
}

}  // namespace attest
