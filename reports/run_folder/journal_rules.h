// How this program reads journals, and what it says of how they were read.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/journal/journal.h"

namespace attest {

/// Properties are those of the catalogue.
[[nodiscard]] JournalRules journal_rules(bool salvage = false);

/// A journal, and what is to be said of it.
struct JournalNotes {
  std::filesystem::path journal;
  std::vector<std::string> notes;  ///< Journal::notes
};
/// "note: run/run.jsonl: …" on standard error, a line each; what is to be said of several journals alike is said once.
void say_notes(std::span<const JournalNotes> notes);

}  // namespace attest
