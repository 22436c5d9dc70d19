// What a run leaves beside its journal.
#pragma once

#include <filesystem>

#include "attest/journal.h"
#include "compare.h"
#include "summary.h"

namespace attest {

/// The journal of a run's folder as it stands on the disk, canonical but with its meta records and notes.
[[nodiscard]] Journal read_results(const std::filesystem::path& folder);

/// summary.json, summary.md, tolerances.json and report.html. `changes` as html_page's.
Summary write_results(const std::filesystem::path& folder, const Journal& journal, const Comparison* changes = nullptr);

}  // namespace attest
