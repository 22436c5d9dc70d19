#include <fmt/format.h>

#include <map>
#include <set>

#include "reports/run_folder/version.h"
#include "reports/sections/sections.h"

namespace attest {

Blocks environment_page(const Reported& run) {
  const Summary& summary = run.summary;
  const Journal& journal = run.journal;
  std::map<std::string, std::set<std::string>> known;
  for (const MetaRecord& meta : journal.meta) {
    if (meta.event != "begin" && meta.event != "end") continue;
    for (const auto& [name, fact] : meta.facts)
      known[meta.event == "end" && name == "time" ? "end" : name].insert(fact);
  }
  Facts facts{{{"seed", {std::to_string(summary.seed)}}}};
  const auto add = [&](const std::string& name, const auto& values) {
    Fact& fact = facts.facts.emplace_back(Fact{theirs(name), {}});
    for (const std::string& value : values) fact.said.emplace_back(theirs(value));
  };
  for (const auto& [name, values] : known) add(name, values);
  if (journal.run && !journal.run->case_files.empty()) add("case files", journal.run->case_files);
  facts.facts.push_back({"written by", {"attest " + version()}});
  Blocks blocks{std::move(facts)};
  for (const KernelRecord& kernel : journal.kernels) {
    if (!kernel.manifest.empty())
      blocks.emplace_back(Group{
          Group::Kind::folded, {"manifest of ", theirs(kernel.id)}, {CodeLines{{kernel.manifest}, /*shell=*/false}}});
  }
  return blocks;
}

}  // namespace attest
