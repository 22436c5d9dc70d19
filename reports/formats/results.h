// What a run leaves beside its journal.
#pragma once

#include <filesystem>

#include "core/journal/journal.h"
#include "reports/conclusion/conclusion.h"

namespace attest {

/// summary.json, summary.md, tolerances.json and report.html.
void write_results(const std::filesystem::path& folder, const Journal& journal, const Summary& summary,
                   const Conclusion& conclusion);

}  // namespace attest
