// Where the keys and values of a problem lie in a cache: in pages that a table names, or in rows that an index names.
// What is computed does not depend on it, so that a problem holds its keys and values one after another, as if there
// were no cache, and beside them the tables; whoever calls a kernel lays them out, and nobody else
// (kernel-interface.md, section 1). Kernels that are judged by it gather their own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/problem/case.h"

namespace attest {

/// Keys to a page of a problem with a page table.
[[nodiscard]] std::int64_t page_size_of(const Problem& c);
/// Columns of the table that the keys of an entry of the batch need, the first ones.
[[nodiscard]] std::int64_t columns_needed(const Problem& c, std::int64_t entry);

/// The most that `append` can be: as many keys as every entry has.
[[nodiscard]] std::int64_t most_append(const Problem& c);
/// Makes `append` what it can be at most; 0 where a problem has no lengths of keys.
void settle_append(Problem& c);

/// The case with k and v as kernels get them: [pages, kv_heads, page size, width], or [rows, kv_heads, N, width], and
/// new keys apart, as k_new and v_new beside the lengths without them. What no key stands in holds numbers, others
/// where the provenance's "unused" is "other", or NaN where that is "nan". Pages that a table names twice are one where
/// both hold the same, bit by bit; else the second gets a page of its own, behind all others, and so does what a table
/// names no page for. As it is where it is in no cache.
[[nodiscard]] Case laid_out_in_cache(const Case& c);
/// k or v of a case that is laid out so, after a call on it: new keys stand where they belong, and nothing else has
/// changed.
[[nodiscard]] Tensor after_the_call(const Case& laid_out, Slot slot);
/// What a call did to an element of k or v that it had not to do: `is_new`: one that it had to write.
[[nodiscard]] std::string words_of_append(std::string_view name, const Shape& shape, std::int64_t element, bool is_new);
/// The case that is laid out so, with keys and values one after another; those that no length needs become 0. Throws
/// UsageError, one line, for a table that is none; what is not about the cache is not looked at.
[[nodiscard]] Case read_from_cache(Case laid_out);

/// The case with its keys in pages of so many, N rounded up to whole ones, and a page for each that a length needs: a
/// permutation of them and of `unused` others drawn from the seed. Lengths of keys are stated; what no length needs
/// becomes 0. `own_values`: v has a table of its own.
[[nodiscard]] Case in_pages(const Case& c, std::int64_t page_size, std::int64_t unused, std::uint64_t seed,
                            bool own_values = false);
/// The case with its entries in rows of a cache that has so many more, drawn from the seed.
[[nodiscard]] Case in_cache_rows(const Case& c, std::int64_t unused, std::uint64_t seed);
/// The case outside of every cache, its lengths as they are.
[[nodiscard]] Case outside_of_caches(Case c);

}  // namespace attest
