// What laws about sequences of lengths of their own share, packed or padded, or in a cache.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/kernel/kernel_under_test.h"
#include "core/measure/verdict.h"
#include "core/problem/case.h"
#include "properties/arrangement/sequences.h"
#include "properties/generators/recipe.h"
#include "properties/language/agree.h"
#include "properties/language/result.h"

namespace attest {

/// bits where the kernel claims that other rows of the batch do not matter, and that padding does not where there is
/// some.
[[nodiscard]] Match match_of_company(const Kernel& kernel, const Case& c);

/// Output and log-sum-exp.
[[nodiscard]] Verdict same(const Result& left, const Result& right, Match match);
/// Both sides sequence by sequence.
[[nodiscard]] Verdict same_sequences(const Case& c, const Result& left, const Result& right, Match match);

/// A sequence that has a query and, where one has both, a key.
[[nodiscard]] std::int64_t some_sequence(const Case& c, std::string_view name);

/// The case with numbers of no sequence, or of others than s, that are not to matter: NaN, or where the kernel does not
/// say that dead ones may hold that, large ones.
[[nodiscard]] Case with_poison(const Kernel& kernel, const Case& c, Whose whose, std::int64_t s);

/// Rows of a sequence without keys are what the manifest makes of rows that see none. `all`: the output of the case.
[[nodiscard]] Verdict obeys_policy(const Kernel& kernel, const Result& all, std::int64_t s);

// What is drawn.
void sometimes_causal(Recipe& r);
void several(Recipe& r);  ///< sequences
void at_least_a_key(Recipe& r);
void lengths_of_keys(Recipe& r);  ///< and now and then of queries too

}  // namespace attest
