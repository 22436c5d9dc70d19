// The case files of a run's folder, held against the findings that name them.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/journal/journal.h"
#include "core/support/folder.h"

namespace attest {

/// "note: 2 case files that run/run.jsonl names are missing: …", with its newline; empty where every finding's case
/// file is in one of the folders.
[[nodiscard]] std::string missing_cases_text(std::span<const FindingRecord> findings,
                                             std::span<const std::filesystem::path> folders);

/// Removes from a run's folder what a killed run saved of batches that it did not finish: case files of findings,
/// …--k12.safetensors, that none of the journal's names. To be called where the journal's lock is held; `earlier` is
/// the journal as it was read before.
void remove_unnamed_cases(const Folder& folder, const Journal& earlier);

}  // namespace attest
