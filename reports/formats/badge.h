// Badges: the verdict of a run as a small picture beside a project's name, and as what a service that draws badges
// reads.
#pragma once

#include <string>

#include "core/journal/journal.h"
#include "reports/conclusion/conclusion.h"

namespace attest {

/// An SVG of 20 px height: "attest", and beside it the verdict with how much it rests on, "held: 39 of 41 properties",
/// green where the exit status is 0, red where it is 1, and else yellow. It needs no font of its own and loads nothing.
[[nodiscard]] std::string to_badge(const Summary& summary, const Journal& journal, const std::string& folder,
                                   const Conclusion& conclusion);

/// The same words as the JSON that a service asks an endpoint for: {"schemaVersion": 1, "label", "message", "color"}.
[[nodiscard]] std::string to_badge_json(const Summary& summary, const Journal& journal, const std::string& folder,
                                        const Conclusion& conclusion);

}  // namespace attest
