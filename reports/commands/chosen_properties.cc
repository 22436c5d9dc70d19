#include "reports/commands/chosen_properties.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/support/errors.h"
#include "core/support/names.h"
#include "reports/command_line/option_values.h"

namespace attest {

std::vector<std::string> property_names(std::string_view prefix) {
  std::vector<std::string> names;
  for (const Property* property : catalogue()) names.push_back(fmt::format("{}{}", prefix, property->name));
  return names;
}

void declare_properties(OptionList& list, std::vector<std::string>& globs) {
  list.option("--property", globs, any_text("GLOB", [] { return Completions{.words = property_names()}; }),
              "properties to look at, by name; repeatable (default: all)");
}

std::vector<const Property*> chosen_properties(const std::vector<std::string>& globs) {
  if (globs.empty()) return catalogue();
  std::vector<const Property*> matching;
  for (const std::string& glob : globs) {
    const std::vector<const Property*> found = properties_matching(glob);
    if (found.empty()) {
      std::vector<std::string_view> names;
      for (const Property* property : catalogue()) names.push_back(property->name);
      throw UsageError(fmt::format("no property of attest list --properties is named {}{}", in_quotes(glob),
                                   suggestion(glob, names, /*list_up_to=*/0)));
    }
    matching.insert(matching.end(), found.begin(), found.end());
  }
  std::vector<const Property*> chosen;
  for (const Property* property : catalogue()) {
    if (std::ranges::find(matching, property) != matching.end()) chosen.push_back(property);
  }
  return chosen;
}

}  // namespace attest
