// A finding on the report's page.
#pragma once

#include <string>

#include "core/journal/journal.h"

namespace attest {

/// The finding with its replay line: class, what was found and allowed, where, with the exact value as a certified
/// enclosure, and the numbers of the shrunk case, decimal and hexadecimal, where its file is in the run's folder and
/// can be read. `folder` may be empty: unknown.
[[nodiscard]] std::string finding_card(const FindingRecord& finding, const std::string& folder);

}  // namespace attest
