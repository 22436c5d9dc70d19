#include "reports/commands/options/chosen_properties.h"

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
  const Value<std::vector<std::string>> several{
      "GLOB", [](std::string_view, const std::string& text) { return globs_in(text); },
      [] { return Completions{.words = property_names(), .listed = true}; }};
  list.option("--property", globs, several,
              "properties to look at, by name, as attention.oracle or 'causal.*', or several with commas; repeatable "
              "(default: all)");
}

std::vector<std::string> globs_in(std::string_view list) {
  std::vector<std::string> globs;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    globs.emplace_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return globs;
}

std::string glob_meant(std::string_view word) {
  const auto any = [](std::string_view glob) { return !properties_matching(glob).empty(); };
  const std::string family = fmt::format("{}{}*", word, word.ends_with('.') ? "" : ".");
  if (word.empty() || word.find_first_of("*?[") != std::string_view::npos) return {};
  if (any(family)) return fmt::format("; did you mean '{}'?", family);
  std::vector<std::string_view> names;
  for (const Property* property : catalogue()) names.push_back(property->name);
  if (std::string near = suggestion(word, names, /*list_up_to=*/0); !near.empty()) return near;
  for (const std::string& glob : {fmt::format("*.{}", word), fmt::format("*{}*", word)})
    if (any(glob)) return fmt::format("; did you mean '{}'?", glob);
  return {};
}

std::vector<const Property*> chosen_properties(const std::vector<std::string>& globs) {
  if (globs.empty()) return catalogue();
  std::vector<const Property*> matching;
  for (const std::string& glob : globs) {
    const std::vector<const Property*> found = properties_matching(glob);
    if (found.empty())
      throw UsageError(
          fmt::format("no property of attest list --properties is named {}{}", in_quotes(glob), glob_meant(glob)));
    matching.insert(matching.end(), found.begin(), found.end());
  }
  std::vector<const Property*> chosen;
  for (const Property* property : catalogue()) {
    if (std::ranges::find(matching, property) != matching.end()) chosen.push_back(property);
  }
  return chosen;
}

}  // namespace attest
