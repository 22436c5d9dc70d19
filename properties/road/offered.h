// Whether a case that was not judged was the kernel's to answer: the manifest offers it and the theorem speaks of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/journal/journal.h"
#include "core/problem/selection.h"
#include "properties/road/road.h"

namespace attest {

/// The kernel answered `unsupported` to it.
[[nodiscard]] bool is_refusal(const Reason& reason);
/// A case with that reason was offered: the kernel refused it, it was excused or could not be decided, or it was too
/// large or memory ran out. What the manifest rules out, what misses a hypothesis, what the contract lets a kernel
/// reject, and what is not about the kernel was not.
[[nodiscard]] bool was_offered(const Reason& reason);

/// Cases that were judged or offered: of so many it was for the kernel to show what it can.
[[nodiscard]] std::int64_t offered_cases(const Tally& tally);

/// Why a property was hardly tested, and what to do: "hardly tested: judged in 3 of 480 cases that the manifest offers,
/// where 30 are the least for held; most often (477) …". That is where fewer were judged than least_judged asks for.
/// Empty where enough were, and where the manifest offers fewer than that.
[[nodiscard]] std::string hardly_tested(const Tally& tally);
/// Why a property that held says nothing all the same: the manifest offers fewer cases of it than least_judged asks
/// for, so that it as good as rules the property out. "hardly offered: 1 of 20 cases, where 2 are the least for held;
/// most often (16) skipped: has an additive mask; the manifest's masks do not list additive". Empty elsewhere.
[[nodiscard]] std::string hardly_offered(const Tally& tally);
/// "most often (477) skipped: unsupported: …; state that limit in the manifest, or take these cases": of the reasons
/// for which offered cases were not judged. Where there is none, what to do alone.
[[nodiscard]] std::string cause_and_remedy(const std::map<Reason, std::int64_t>& reasons);
/// "17 of 8000 cases", "none of 8000 cases".
[[nodiscard]] std::string judged_text(std::int64_t judged, std::int64_t of);

/// Counts the combination (combination.h) of a drawn case that was judged and has a variant.
void count_combination(Tally& tally, const Walked& walked);

/// The shape of a case that was judged, or offered with a query and a key, as the kernel got it; nothing of others, and
/// where that is not known.
[[nodiscard]] std::optional<Extents> offered_shape(const Walked& walked);

}  // namespace attest
