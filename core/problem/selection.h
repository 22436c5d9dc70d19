// Selection: chosen batch entries, heads, queries, keys and columns of a case, in any order and with repeats. The one
// primitive of projection and shrinking: most of what is done to a case only gathers.
#pragma once

#include <cstdint>
#include <vector>

#include "core/problem/case.h"

namespace attest {

/// Extents of a case under the names of kernel.h. attention: kv_heads; multihead: c_q, c_k, c_v, d_o; 0 where not its.
struct Extents {
  std::int64_t batch = 0, heads = 0, kv_heads = 0, queries = 0, keys = 0, dk = 0, dv = 0;
  std::int64_t c_q = 0, c_k = 0, c_v = 0, d_o = 0;
  [[nodiscard]] bool operator==(const Extents&) const = default;
};
[[nodiscard]] Extents extents_of(const Problem& c);

using Indices = std::vector<std::int64_t>;
/// 0, 1, …, extent - 1.
[[nodiscard]] Indices all_of(std::int64_t extent);
/// `wanted` indices: the first ones, and round again when there are more than `extent`; none where the extent is 0.
[[nodiscard]] Indices cycled(std::int64_t extent, std::int64_t wanted);

/// What to keep, per axis, as indices into the old case.
struct Selection {
  Indices batch, heads, kv_heads, queries, keys, dk, dv, c_q, c_k, c_v, d_o;
  [[nodiscard]] bool operator==(const Selection&) const = default;
};
/// The selection that changes nothing.
[[nodiscard]] Selection everything(const Problem& c);

/// Model widths (c_q, c_k, c_v, d_o) that equal heads·dk before the selection equal it after: their indices are cycled
/// to the selected heads times the selected dk. For attention cases nothing.
void keep_widths(const Problem& c, Selection& selection);

/// The case made of what is selected; scale, convention, causal form and provenance are copied. Without an output
/// projection d_o is heads·dv and its own indices are not looked at. A scale of 1/sqrt(dk) stays that of the selected
/// dk. The caller keeps kv_heads a divisor of heads.
[[nodiscard]] Case select(const Case& c, const Selection& selection);

}  // namespace attest
