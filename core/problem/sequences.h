// The sequences that a problem is made of. Attention is of one sequence: which rows of the tensors it has, a batch says
// by its entries, by their lengths, or by where each begins among all the tokens; here they are told apart, and nowhere
// else (kernel-interface.md, section 1). Kernels that are judged by it have their own.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/problem/problem.h"

namespace attest {

/// Rows first_query, first_query + 1, … of an entry's queries and of its output, and so of its keys and values. Its own
/// row and key 0 are the first ones, and its numbers of them the M and N of causal forms and windows.
struct Sequence {
  std::int64_t entry = 0;  ///< along the batch
  std::int64_t first_query = 0, queries = 0;
  std::int64_t first_key = 0, keys = 0;
  [[nodiscard]] bool operator==(const Sequence&) const = default;
};

/// Has it the row of the entry?
[[nodiscard]] constexpr bool has_query(const Sequence& s, std::int64_t i) {
  return s.first_query <= i && i < s.first_query + s.queries;
}
[[nodiscard]] constexpr bool has_key(const Sequence& s, std::int64_t j) {
  return s.first_key <= j && j < s.first_key + s.keys;
}

/// Has it a variant that says which rows and keys are whose? Without one the entries of the batch are the sequences.
[[nodiscard]] bool has_sequences(const Problem& c);
/// Takes these variants away, and those of a cache: every entry of the batch is a sequence then, as a whole.
void drop_sequences(Problem& c);
/// At least one; an entry of the batch each where none are packed.
[[nodiscard]] std::int64_t sequence_count(const Problem& c);
[[nodiscard]] Sequence sequence_of(const Problem& c, std::int64_t number);
/// All, in the order of their rows.
[[nodiscard]] std::vector<Sequence> sequences_of(const Problem& c);
/// The one that has row i of the entry; none: it is padding.
[[nodiscard]] std::optional<Sequence> sequence_at(const Problem& c, std::int64_t entry, std::int64_t i);
/// The rows of the problem that are in none, of all entries and heads as the output has them: (batch * heads + head) *
/// M
/// + row, ascending.
[[nodiscard]] std::vector<std::int64_t> padding_rows(const Problem& c);
/// Whether it has such rows, or keys that are in none.
[[nodiscard]] bool has_padding(const Problem& c);

}  // namespace attest
