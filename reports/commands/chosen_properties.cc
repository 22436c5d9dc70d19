#include "reports/commands/chosen_properties.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/support/errors.h"
#include "core/support/names.h"

namespace attest {

std::vector<const Property*> chosen_properties(const Options& options) {
  if (options.properties.empty()) return catalogue();
  std::vector<const Property*> matching;
  for (const std::string& glob : options.properties) {
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
