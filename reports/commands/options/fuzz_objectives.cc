#include "reports/commands/options/fuzz_objectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "core/problem/problem.h"
#include "core/support/errors.h"
#include "core/support/names.h"
#include "fuzz/campaign.h"
#include "reports/commands/options/chosen_properties.h"

namespace attest {
namespace {

struct Objective {
  std::string_view word;
  std::array<std::string_view, gradient_count> properties;
};
/// Those of each entry that a kernel may have.
constexpr Objective objectives[] = {{"error", {"attention.oracle", "multihead.oracle"}},
                                    {"nonfinite", {"attention.finite", "multihead.finite"}},
                                    {"gradient",
                                     {"backward.oracle-dq", "backward.oracle-dk", "backward.oracle-dv",
                                      "backward.oracle-dmask", "backward.oracle-dsink"}},
                                    {"row-sum", {"softmax.rows-sum-to-one"}}};

std::vector<const Property*> laws(const std::string& word) {
  const std::string glob = word.substr(std::string_view("law:").size());
  std::vector<const Property*> matching = properties_matching(glob);
  if (matching.empty()) {
    throw UsageError(
        fmt::format("--objective {}: no property is named {}{}", in_quotes(word), in_quotes(glob), glob_meant(glob)));
  }
  std::erase_if(matching, [](const Property* property) { return property->is_statistical(); });
  if (matching.empty()) {
    throw UsageError(fmt::format(
        "--objective {}: is statistical; a search would find the draw that fails, which is nothing that the "
        "kernel did",
        in_quotes(word)));
  }
  return matching;
}

std::vector<const Property*> properties_of(const std::string& word) {
  if (word == "all") {
    std::vector<const Property*> all = catalogue();
    std::erase_if(all, [](const Property* property) { return property->is_statistical(); });
    return all;
  }
  if (word.starts_with("law:")) return laws(word);
  std::vector<const Property*> found;
  for (const Objective& objective : objectives) {
    if (objective.word != word) continue;
    for (const std::string_view name : objective.properties)
      if (!name.empty()) found.push_back(properties_matching(name).at(0));
    return found;
  }
  const std::array<std::string_view, 6> known{"error", "nonfinite", "gradient", "row-sum", "law:PROPERTY", "all"};
  throw UsageError(fmt::format("unknown --objective {}{}", in_quotes(word), suggestion(word, known)));
}

}  // namespace

std::vector<std::string> objective_names() {
  std::vector<std::string> names = property_names("law:");
  for (const char* name : {"all", "error", "gradient", "nonfinite", "row-sum"}) names.emplace_back(name);
  return names;
}

FuzzObjectives fuzz_objectives(const std::vector<std::string>& words) {
  std::set<const Property*> chosen;
  for (const std::string& word : words.empty() ? std::vector<std::string>{"error"} : words)
    for (const Property* const property : properties_of(word)) chosen.insert(property);
  FuzzObjectives result;
  for (const Property* const property : catalogue())
    if (chosen.contains(property)) result.properties.push_back(property);
  const Property* const oracle = properties_matching("attention.oracle").at(0);
  if (chosen.contains(oracle)) result.favoured = oracle;
  return result;
}

}  // namespace attest
