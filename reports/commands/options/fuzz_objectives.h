// What a campaign searches for, from the words of --objective to properties.
#pragma once

#include <string>
#include <vector>

#include "properties/catalogue/property.h"

namespace attest {

/// The properties that a campaign judges by, in the order of the catalogue, each once.
struct FuzzObjectives {
  std::vector<const Property*> properties;
  const Property* favoured = nullptr;  ///< gets every other turn among several; nullptr: none
};

/// Every word that names one.
[[nodiscard]] std::vector<std::string> objective_names();

/// error: the distance from the exact result; gradient: the same of gradients; nonfinite; row-sum; law:GLOB; all.
/// Empty: error. Throws UsageError for another word, a glob that matches nothing (with the nearest name), and one that
/// matches statistical properties alone.
[[nodiscard]] FuzzObjectives fuzz_objectives(const std::vector<std::string>& words);

}  // namespace attest
