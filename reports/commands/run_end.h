// The end of a run's journal.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>

#include "reports/causes/find_causes.h"
#include "reports/run/engine.h"

namespace attest {

/// Hands on the records of what is wrong with the kernels, and of what explains it (causes_of, explanations_of). An
/// interrupt leaves them out, and so does a lack of memory: what is explained by then stands. `journal` is canonical.
void explain_findings(const Journal& journal, const RunFolder& folder, std::span<const std::unique_ptr<Kernel>> kernels,
                      const HowDrawn* draw, const std::function<void(const MetaRecord&)>& append);

/// Of a check: writes the last records and returns what read_results would read now. `compared`: with another kernel,
/// whose own arithmetic would have to be explained too.
[[nodiscard]] Journal finish_journal(const Plan& plan, const Road& road, const RunFolder& folder, JournalWriter& writer,
                                     Ending ending, bool compared, std::chrono::steady_clock::time_point start);

/// Saves the worst case of every subject that the journal has.
void save_worst_cases(const Engine& engine, const Journal& journal);

}  // namespace attest
