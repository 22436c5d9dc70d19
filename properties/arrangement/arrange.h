// Arrangements of cases: the other side of a theorem. Each returns a valid case of the same scalars and provenance.
#pragma once

#include <functional>

#include "core/problem/case.h"
#include "core/problem/selection.h"
#include "core/problem/sight.h"

namespace attest {

/// Rows, keys, batch entries at the indices, in their order; the mask follows. Causal form, window and chunks count the
/// rows and keys that are left: of a case without them, or where a law says what they count then.
[[nodiscard]] Case with_queries(const Case& c, const Indices& rows);
[[nodiscard]] Case with_keys(const Case& c, const Indices& keys);
[[nodiscard]] Case with_batch(const Case& c, const Indices& entries);
[[nodiscard]] Case with_heads(const Case& c, const Indices& heads);  ///< key-value heads that groups share are repeated
/// Heads of q read that head of k and v, of the same batch entry.
[[nodiscard]] Case with_kv_heads(const Case& c, const std::function<std::int64_t(std::int64_t head)>& kv_head);
[[nodiscard]] Case without_query(const Case& c, std::int64_t i);  ///< Q^(i), B^(i)
[[nodiscard]] Case without_key(const Case& c, std::int64_t s);    ///< K^(s), V^(s), B^[s]

/// The same problem without a mask, and without what hides by position.
[[nodiscard]] Case without_mask(Case c);
/// Without what hides keys by their position, causal form, window and chunks; a mask stays.
void drop_positions(Case& c);
/// The same problem with its mask written out: additive, in the case's dtype, [batch|1, heads|1, M, N], 0 where there
/// was none; a boolean mask becomes 0 and -inf. The causal form stays.
[[nodiscard]] Case with_additive_mask(Case c);
/// The same problem, before its mask takes numbers: they are added after the scale, unless it has some that are not. Of
/// a mask that hides and nothing else a case may say what it likes.
[[nodiscard]] Case with_convention_of_numbers(Case c);
/// The same problem with its mask and what positions hide as one additive mask, and without what hides by position.
[[nodiscard]] Case with_causal_written_out(Case c);
/// Sets the mask entry (i, s) of every batch entry and head (of every row where i < 0); the mask is written out first.
[[nodiscard]] Case with_mask_entry(Case c, std::int64_t i, std::int64_t s, double value);

/// The first entry of the leading axis, which is then 1 long.
[[nodiscard]] Tensor first_row(const Tensor& tensor);
/// What the first head has, for all.
[[nodiscard]] Tensor of_first_head(const Tensor& tensor);
/// Element by element: tensor[e] = value(e, old), rounded once to its dtype.
[[nodiscard]] Tensor mapped(Tensor tensor, const std::function<double(std::int64_t, double)>& value);

}  // namespace attest
