// The properties that a command line names.
#pragma once

#include <vector>

#include "properties/catalogue/property.h"
#include "reports/command_line/options.h"

namespace attest {

/// In the order of the catalogue; all where none is named. Throws UsageError for a glob that matches nothing, with the
/// nearest name.
[[nodiscard]] std::vector<const Property*> chosen_properties(const Options& options);

}  // namespace attest
