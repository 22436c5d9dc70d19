#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "properties/catalogue/property.h"
#include "properties/road/offered.h"
#include "reports/results/combinations.h"
#include "reports/sections/sections.h"

namespace attest {
namespace {

/// Joined; a long list is folded.
Piece list(const std::set<std::string>& words, std::string_view of_what) {
  constexpr std::size_t open = 12;
  const std::string joined = fmt::format("{}", fmt::join(words, ", "));
  if (words.size() <= open) return theirs(joined);
  return {fmt::format("{} {}", words.size(), of_what), Piece::Kind::unfolds, joined};
}

/// What the kernels' manifests offer and was hardly tested, and what to do.
Table hardly_tested_table(const Summary& summary) {
  Table table{"Hardly tested, and inconclusive for that", columns_of("kernel|dtype|property|why, and what to do")};
  for (const KernelSummary& kernel : summary.kernels) {
    const auto add = [&](const std::string& what, const std::string& why) {
      table.rows.push_back({{theirs(kernel.name), theirs(kernel.dtype), theirs(what), theirs(why)}, tags_of(kernel)});
    };
    if (!kernel.left_out.empty()) add("all", kernel.left_out);
    for (const PropertySummary& property : kernel.properties)
      if (property.hardly_tested) add(property.name, property.reason);
  }
  return table;
}

/// Properties none of whose cases was judged, by the reason, with where that was.
Table unjudged(const Summary& summary) {
  std::map<std::string, std::map<std::string, std::set<std::string>>> by_reason;
  for (const KernelSummary& kernel : summary.kernels) {
    for (const PropertySummary& property : kernel.properties) {
      if (property.tally.judged() == 0 && !property.hardly_tested)
        by_reason[property.reason][property.name].insert(kernel.name + " " + kernel.dtype);
    }
  }
  Table table{"Properties of which no case was judged", columns_of("property|kernels|why")};
  for (const auto& [reason, properties] : by_reason)
    for (const auto& [property, kernels] : properties)
      table.rows.push_back({{theirs(property), list(kernels, "kernels × dtypes"), theirs(reason)}, {"", property}});
  return table;
}

Table reasons_table(const Summary& summary) {
  std::map<Reason, std::int64_t> reasons;
  for (const KernelSummary& kernel : summary.kernels)
    for (const PropertySummary& property : kernel.properties)
      for (const auto& [reason, cases] : property.tally.reasons)
        if (was_offered(reason)) reasons[reason] += cases;
  const auto sorted = commonest(reasons);
  constexpr std::size_t shown = 12;
  Table table{"Why cases that the manifests offer were not judged", columns_of("reason|#cases not judged")};
  if (sorted.size() > shown) table.caption += fmt::format(": the {} commonest of {} reasons", shown, sorted.size());
  for (std::size_t i = 0; i < std::min(shown, sorted.size()); ++i)
    table.rows.push_back({{theirs(sorted[i].first), sorted[i].second}});
  return table;
}

/// Properties of the catalogue that were not asked.
std::set<std::string> left_out(const Summary& summary) {
  std::set<std::string> names;
  for (const Property* property : catalogue()) names.emplace(property->name);
  for (const KernelSummary& kernel : summary.kernels)
    for (const PropertySummary& property : kernel.properties) names.erase(property.name);
  return names;
}

}  // namespace

Blocks uncovered_page(const Reported& run) {
  const Summary& summary = run.summary;
  Facts facts;
  for (const KernelRecord& kernel : summary.not_started)
    facts.facts.push_back({"not started", {{theirs(kernel.id), ": ", theirs(kernel.not_started)}}});
  const auto add = [&](const char* name, const std::set<std::string>& words, std::string_view of_what) {
    if (!words.empty()) facts.facts.push_back({name, {list(words, of_what)}});
  };
  const std::vector<std::string> none = summary.judged_by_none();
  add("judged on no kernel", {none.begin(), none.end()}, "properties");
  add("not asked", left_out(summary), "properties of the catalogue");
  add("never drawn", never_drawn(summary.drawn().run.counts), "kinds of cases");
  std::set<std::string> apart;
  for (const auto& [variants, words] : never_combined(combinations_in(summary)))
    for (const std::string& one : words) apart.insert(fmt::format("{} {}", variants, one));
  add("never judged together", apart, "combinations of variants");
  std::set<std::string> pairs;
  for (const auto& [one, other] : pairs_in(summary).never) pairs.insert(fmt::format("{} with {}", one, other));
  add("no case had both", pairs, "pairs of variants");
  if (!summary.scarce.empty()) {
    facts.facts.push_back({"too few cases",
                           {{fmt::format("{} properties × kernels × dtypes were judged on too few cases of the kind "
                                         "that they are about: see ",
                                         summary.scarce.size()),
                             leading("drawn", "what was drawn")}}});
  }
  Blocks blocks;
  if (!facts.facts.empty()) blocks.emplace_back(std::move(facts));
  for (const Table& table : {hardly_tested_table(summary), unjudged(summary), reasons_table(summary)})
    if (!table.rows.empty()) blocks.emplace_back(table);
  blocks.emplace_back(
      Paragraph{fmt::format("No run covers {}. What held here held on these inputs; only what is proved "
                            "holds on all.",
                            no_run_covers),
                "note"});
  return blocks;
}

Brief uncovered_brief(const Reported& run) {
  const Summary& summary = run.summary;
  constexpr std::size_t shown = 6;
  Listing listing;
  for (const KernelRecord& kernel : summary.not_started)
    listing.items.push_back({theirs(kernel.id), " did not start: ", theirs(kernel.not_started)});
  if (const std::vector<std::string> none = summary.judged_by_none(); !none.empty())
    listing.items.push_back({"Judged on no kernel: ", first_of(none, shown)});
  if (const std::string apart = combinations_text(combinations_in(summary)); !apart.empty())
    listing.items.push_back({theirs(apart)});
  if (const std::string apart = pairs_text(pairs_in(summary)); !apart.empty()) listing.items.push_back({theirs(apart)});
  for (const KernelSummary& kernel : summary.kernels) {
    std::map<std::string, std::vector<std::string>> by_reason;
    if (!kernel.left_out.empty()) listing.items.push_back({name_in(kernel), ": ", theirs(kernel.left_out)});
    for (const PropertySummary& property : kernel.properties)
      if (property.tally.judged() == 0 || property.hardly_tested) by_reason[property.reason].push_back(property.name);
    for (const auto& [reason, names] : by_reason)
      listing.items.push_back({name_in(kernel), ": ", first_of(names, shown), ": ", theirs(reason)});
  }
  return {"Not covered", "entries", {}, {std::move(listing)}};
}

Brief notes_brief(const Reported& run) {
  const Summary& summary = run.summary;
  Listing listing;
  for (const KernelNote& note : summary.notes) listing.items.push_back({theirs(note.kernel), ": ", theirs(note.text)});
  return {"Notes", "notes", {}, {std::move(listing)}};
}

}  // namespace attest
