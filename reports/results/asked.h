// What a command line asks for by name, as a run's journal keeps it.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/journal/journal.h"

namespace attest {

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
