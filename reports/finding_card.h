// A finding on the report's page.
#pragma once

#include <string>

#include "attest/journal.h"
#include "summary.h"

namespace attest {

/// What the page knows of a finding beside its record.
struct FindingContext {
  const Journal& journal;     ///< for the kernel's manifest
  const std::string& folder;  ///< of the run, where the case is; empty: unknown
  bool alone;                 ///< the verdict is about one answer held against the exact one, not about two kernels
};

/// The finding with its replay line: class, what was found and allowed, where, the exact value as a certified enclosure
/// where the property is attention.oracle, and the numbers of the shrunk case, decimal and hexadecimal. What needs the
/// saved case is left out where its file is not there or cannot be read.
[[nodiscard]] std::string finding_card(const FindingRecord& finding, const FindingContext& context);

}  // namespace attest
