// The journal of a run's folder.
#pragma once

#include <filesystem>

#include "core/journal/journal.h"

namespace attest {

/// The journal of a run's folder as it stands on the disk, canonical but with its meta records and notes.
[[nodiscard]] Journal read_results(const std::filesystem::path& folder);

}  // namespace attest
