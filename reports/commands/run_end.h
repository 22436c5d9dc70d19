// The end of a check's journal.
#pragma once

#include <chrono>

#include "reports/run/engine.h"

namespace attest {

/// Writes the last records and returns what read_results would read now. `compared`: with another kernel, whose own
/// arithmetic would have to be explained too.
[[nodiscard]] Journal finish_journal(const Plan& plan, const Road& road, const RunFolder& folder, JournalWriter& writer,
                                     Ending ending, bool compared, std::chrono::steady_clock::time_point start);

}  // namespace attest
