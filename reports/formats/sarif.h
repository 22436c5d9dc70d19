// SARIF 2.1.0: the findings of a run for what reads results of analyses (code scanning, editors).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/journal/journal.h"
#include "reports/conclusion/conclusion.h"

namespace attest {

/// The OASIS standard "Static Analysis Results Interchange Format" 2.1.0. A rule for each property of the run, with its
/// statement, source and what must hold in floating point; a result for each finding: a violation is an error, what is
/// undecided is "open". A result's message ends with the line that replays it; its location is the case's file,
/// relative to the run's folder (uriBaseId RUN); its fingerprint is of what violates what, the same in every run. What
/// is wrong with a kernel is one result for each cause, at the kernel's source where the run was told it (source_fact)
/// or its manifest says it. Kernels that did not start, notes, and an end before its time are notifications. `folder`
/// is the run's, empty for several. The conclusion's problems are results of the rule "run", whose location is the
/// summary; the results of violations that are expected are marked as suppressed.
[[nodiscard]] std::string to_sarif(const Summary& summary, const Journal& journal, const std::string& folder,
                                   const Conclusion& conclusion);

/// Of the record that begins a run: where its kernel's source stands, as source_place takes it.
inline constexpr const char* source_fact = "source";

/// A relative path as a reference of RFC 3986: every byte that is not unreserved or '/' in percent.
[[nodiscard]] std::string uri_of_path(std::string_view path);

}  // namespace attest
