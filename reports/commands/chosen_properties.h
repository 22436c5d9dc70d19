// --property, and the properties that it names.
#pragma once

#include <string>
#include <vector>

#include "properties/catalogue/property.h"
#include "reports/command_line/command.h"

namespace attest {

/// Of the catalogue, each behind the prefix.
[[nodiscard]] std::vector<std::string> property_names(std::string_view prefix = "");

/// `globs`: as typed; empty: all.
void declare_properties(OptionList& list, std::vector<std::string>& globs);

/// In the order of the catalogue; all where none is named. Throws UsageError for a glob that matches nothing, with the
/// nearest name.
[[nodiscard]] std::vector<const Property*> chosen_properties(const std::vector<std::string>& globs);

}  // namespace attest
