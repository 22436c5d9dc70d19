// Arrangements within a manifest's limits of length. A law that deletes a row or a key, or looks at a few of them, asks
// for lengths that a kernel may refuse: there rows are filled up by repeated ones, which query deletion lets nobody
// see, and keys come and go by as many as the limits ask for. Where there is no limit nothing is different.
#pragma once

#include <cstdint>
#include <optional>

#include "core/kernel/kernel_under_test.h"
#include "core/kernel/limits.h"
#include "core/problem/case.h"
#include "properties/language/result.h"

namespace attest {

/// The queries that are left where one is deleted or, in every other case, several one after another: up to 16, as of a
/// batch that was large, or one alone, as in decoding. Ascending.
[[nodiscard]] Indices queries_left(const Case& c);

/// The rows asked for and behind them, in turn, as many of them once more as the manifest asks for beside the case's
/// keys; nothing more where it allows no number of so many.
[[nodiscard]] Indices filled_up(const Kernel& kernel, const Case& c, const Indices& rows);
/// run (result.h) on these rows of a case without a causal form, filled up as above: of what comes back only
/// the rows asked for are left.
[[nodiscard]] Result run_rows(Kernel& kernel, const Case& c, const Indices& rows);

/// How many keys a problem may have; where M = N is asked for, how many of both.
[[nodiscard]] AllowedExtents keys_within(const Kernel& kernel);

/// Keys that are deleted at once.
struct Deletion {
  Indices gone, rest;
  /// What the manifest lets go. Else it lets the case have no fewer keys, and `gone` is the key alone.
  bool is_allowed;
};
/// Key s and those behind it, the first ones following the last, as few as the manifest lets go; one stays.
[[nodiscard]] Deletion deletion_of(const Kernel& kernel, const Case& c, std::int64_t s);
/// The rows of the case without those keys, which no row of it sees.
[[nodiscard]] Result run_without(Kernel& kernel, const Case& c, const Deletion& deletion, const Indices& rows);
/// These keys alone and, behind them, as many hidden ones as the manifest asks for.
[[nodiscard]] Case with_keys_alone(const Kernel& kernel, const Case& c, const Indices& keys);
/// The rows of the case that may stand beside so many keys: all of them, or where M = N is asked for the first ones.
[[nodiscard]] Indices rows_beside(const Kernel& kernel, const Case& c, std::int64_t keys);

/// The fewest queries and keys of a problem, of at least 1 each, whole multiples of these.
struct Lengths {
  std::int64_t queries, keys;
};
[[nodiscard]] Lengths fewest(const Kernel& kernel, Lengths multiples);

}  // namespace attest
