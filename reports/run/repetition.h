// What is said and kept of a violated case that does not come back by itself: in its reason, in the journal and in the
// case files, from which replay makes the calls before it again.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/journal/journal.h"
#include "properties/road/repeat.h"

namespace attest {

/// "not repeatable by itself: a kernel started afresh violates it after 2 other calls; …" or, where none were found,
/// "not repeatable: checked again at once it was violated in 3 of 8; …".
[[nodiscard]] std::string repetition_text(const Repetition& repetition);

/// Puts that into the reason of a finding with a repetition, and into the provenance of its case what replay needs.
void note_repetition(FindingRecord& finding, Case& saved);

/// A call as a case file.
[[nodiscard]] Case call_file(const Call& call);

/// What a saved case says of its repetition: `before` holds files beside it. Nothing where it is repeatable.
[[nodiscard]] std::optional<Repetition> repetition_of(const Case& saved);
/// The calls before a saved case. Throws UsageError naming `file` where one is not beside it or is none.
[[nodiscard]] std::vector<Call> calls_before(const Repetition& repetition, const std::filesystem::path& file);

}  // namespace attest
