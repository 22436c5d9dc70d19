// --property, and the properties that it names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "properties/catalogue/property.h"
#include "reports/command_line/command.h"

namespace attest {

/// Of the catalogue, each behind the prefix.
[[nodiscard]] std::vector<std::string> property_names(std::string_view prefix = "");

/// `globs`: as typed, lists taken apart; empty: all.
void declare_properties(OptionList& list, std::vector<std::string>& globs);

/// "a.b,c.*" at its commas.
[[nodiscard]] std::vector<std::string> globs_in(std::string_view list);

/// The end of an error line about a word that matches no property: `; did you mean 'causal.*'?` for the name of a
/// family, the nearest name, or a glob around the word; nothing where none is meant.
[[nodiscard]] std::string glob_meant(std::string_view word);

/// In the order of the catalogue; all where none is named. Throws UsageError for a glob that matches nothing, with the
/// nearest name.
[[nodiscard]] std::vector<const Property*> chosen_properties(const std::vector<std::string>& globs);

}  // namespace attest
