// The journal of a run's folder, and what a command line asks for by name as it keeps it.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "core/journal/journal.h"

namespace attest {

/// The journal of a run's folder as it stands on the disk, canonical but with its meta records and notes.
[[nodiscard]] Journal read_results(const std::filesystem::path& folder);

/// Drops explanations and causes that a later beginning of the same run has overtaken, and what was asked before it. Of
/// one journal, not of merged ones.
void drop_overtaken(std::vector<MetaRecord>& meta);

inline constexpr const char* asked_event = "asked";

struct Asked {
  std::string option;             ///< "--kernel" or "--property"
  std::string name;               ///< as it was given, "builtin:*"
  std::set<std::string> answers;  ///< the kernels' ids, or the properties, that it names
  [[nodiscard]] auto operator<=>(const Asked&) const = default;
};

/// As the journal has it: asked_event.
[[nodiscard]] MetaRecord record_of(const Asked& asked);
/// Those of the journal, each once.
[[nodiscard]] std::vector<Asked> asked_in(const std::vector<MetaRecord>& meta);

}  // namespace attest
