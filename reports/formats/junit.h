// JUnit XML: a run as the tests that CI shows (Jenkins, GitLab, GitHub's and Azure's readers).
#pragma once

#include <string>
#include <string_view>

#include "core/journal/journal.h"
#include "reports/conclusion/conclusion.h"

namespace attest {

/// A suite per kernel and dtype with a case per property, and before them the suite "attest" with a case for the run
/// itself, a case for each kernel that did not start (skipped) and one for each problem (a failure). A violation is a
/// failure whose body has each finding's reason and the line that replays it, the first three at most; what was skipped
/// is skipped, with the reason; what is undecided is an error, unless it counts as held; a violation that is expected
/// is skipped. So there is a failure or an error exactly where the conclusion's exit status is not 0. `folder` is the
/// run's, for the lines to replay. The time is that of the whole run, or of all of them together, where the journal has
/// it: the test of the run has it, its suite and the whole; those of single properties are not kept.
[[nodiscard]] std::string to_junit(const Summary& summary, const Journal& journal, const std::string& folder,
                                   const Conclusion& conclusion);

/// Text inside of an element or of an attribute in double quotes: escaped, and U+FFFD for what is not UTF-8 and for
/// what XML 1.0 has no way to write, control characters and U+FFFE and U+FFFF.
[[nodiscard]] std::string xml_escaped(std::string_view text);

}  // namespace attest
