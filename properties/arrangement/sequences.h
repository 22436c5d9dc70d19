// Sequences of a case (core/problem/sequences.h) in other arrangements: alone, packed, padded, in another order.
#pragma once

#include <cstdint>
#include <functional>

#include "core/problem/case.h"
#include "core/problem/selection.h"
#include "core/problem/sequences.h"
#include "properties/language/result.h"

namespace attest {

/// Sequence number s as a case of its own, without the others and without padding.
[[nodiscard]] Case alone(const Case& c, std::int64_t s);

/// The chosen sequences of a case, in their order; repeats and omissions allowed. The case stays of its form: a batch
/// of lengths keeps each entry's padding, and what is packed the slack behind the last of them.
[[nodiscard]] Case with_sequences(const Case& c, const Indices& chosen);

/// The sequences one after another in a batch of 1, with the last so many rows and keys of the first entry behind them
/// as slack. Where one sequence meets another's keys the mask hides and adds nothing, and nothing is dropped. All have
/// the slopes of the first one. Of a case of lengths, or of none, whose sequences its batch entries are then.
[[nodiscard]] Case packed(const Case& c, std::int64_t slack_queries = 0, std::int64_t slack_keys = 0);
/// The sequences as a batch with lengths, the rows and keys behind each of them as 0.
[[nodiscard]] Case padded(const Case& c);
/// A packed case as one sequence, with a mask that shows every row what it sees of the keys of its own sequence, by the
/// mask and its position. Rows of no sequence see no key. `boolean`: the kind of the mask where the case has none.
[[nodiscard]] Case with_block_mask(const Case& c, bool boolean);

/// Sequence s with so many of its first queries and keys alone, no more than it has: of lengths the rest becomes
/// padding, and of what is packed it is gone.
[[nodiscard]] Case shortened(const Case& c, std::int64_t s, std::int64_t queries, std::int64_t keys);
/// What positions hide within the sequences, by causal form, window and chunks, hidden by the mask; the sequences stay.
/// `boolean`: the kind of the mask where the case has none.
[[nodiscard]] Case with_positions_as_mask(const Case& c, bool boolean);
/// The elements of q, k or v that are of no sequence, of sequence s, or of another one, changed.
enum class Whose { nobody, others };
[[nodiscard]] Tensor changed_rows(const Case& c, Slot slot, Whose whose, std::int64_t s,
                                  const std::function<double(double)>& change);

/// The rows of sequence s of an output of the case.
[[nodiscard]] Tensor rows_of_sequence(const Tensor& out, const Problem& c, std::int64_t s);
/// Of a result of a case those rows that are sequence s, [1, heads, its queries, dv].
[[nodiscard]] Result of_sequence(const Result& result, std::int64_t s);

}  // namespace attest
