#include "reports/commands/without_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "core/support/errors.h"
#include "core/support/names.h"
#include "properties/proofs/weakened.h"
#include "properties/road/watched_kernel.h"
#include "reports/commands/options/chosen_properties.h"
#include "reports/run/interrupt.h"
#include "reports/text/text.h"

namespace attest {
namespace {

const Hypothesis& asked_for(const std::string& name) {
  if (const Hypothesis* const found = hypothesis_named(name)) return *found;
  std::vector<std::string_view> names;
  for (const Hypothesis* const hypothesis : all_hypotheses()) names.push_back(hypothesis->name);
  throw UsageError(fmt::format("--without: no hypothesis is named {}{}", in_quotes(name),
                               suggestion(name, names, /*list_up_to=*/names.size())));
}

void make_folder(const std::filesystem::path& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed)
    throw UsageError(fmt::format("--witness {}: {}; name a folder that can be written", in_quotes(folder.string()),
                                 failed.message()));
}

nlohmann::json to_json(const Weakened& weakened) {
  return {{"property", weakened.property->name},
          {"without", weakened.stated->hypothesis->name},
          {"outcome", name_of(weakened.outcome)},
          {"why", weakened.stated->why},
          {"cases", weakened.cases},
          {"words", weakened.words}};
}

}  // namespace

int prove_without(const std::string& named, const std::filesystem::path& witnesses,
                  const std::vector<std::string>& globs, bool json) {
  const Hypothesis& hypothesis = asked_for(named);
  const std::vector<const Property*> properties = chosen_properties(globs);
  if (std::ranges::none_of(properties, [&](const Property* p) { return stated_by(*p, hypothesis) != nullptr; })) {
    throw UsageError(fmt::format("--without {}: none of the {} chosen properties states it ({})", hypothesis.name,
                                 properties.size(), hypothesis.words));
  }
  if (!witnesses.empty()) make_folder(witnesses);
  std::vector<std::vector<std::string>> rows{{"property", "without it", "because"}};
  std::map<Without, int> counts;
  nlohmann::json all = nlohmann::json::array();
  for (const Property* const property : properties) {
    if (interrupt_requested()) throw Abandoned();
    const Stated* const stated = stated_by(*property, hypothesis);
    if (stated == nullptr) continue;
    const Weakened weakened = without_hypothesis(*property, *stated);
    ++counts[weakened.outcome];
    std::string because = one_line(weakened.words);
    if (weakened.witness && !witnesses.empty()) {
      const std::filesystem::path file =
          witnesses / fmt::format("{}--without-{}.safetensors", property->name, hypothesis.name);
      save_case(*weakened.witness, file);
      because += fmt::format("; attest replay {}", file.string());
    }
    all.push_back(to_json(weakened));
    rows.push_back({std::string(property->name), std::string(name_of(weakened.outcome)), std::move(because)});
  }
  if (json) {
    fmt::print("{}\n", all.dump(2));
  } else {
    fmt::print(
        "without {}: {}\n{}\n{} refuted by enclosures that are apart, {} hold all the same in every case tried, {} say "
        "nothing without it, {} unexpected\n",
        hypothesis.name, hypothesis.words, columns(rows, {false, false, false}), counts[Without::refuted],
        counts[Without::not_needed], counts[Without::no_matter], counts[Without::unexpected]);
  }
  return counts[Without::unexpected] > 0 ? 1 : 0;
}

}  // namespace attest
