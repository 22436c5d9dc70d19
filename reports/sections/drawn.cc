#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "core/measure/bit_classes.h"
#include "reports/results/combinations.h"
#include "reports/sections/sections.h"
#include "reports/text/text.h"

namespace attest {
namespace {

/// Groups and kinds in the generators' order, then what this version does not know.
using Groups = std::vector<std::pair<std::string, std::vector<std::string>>>;

void add_word(Groups& groups, const std::string& word) {
  const std::size_t colon = word.find(':');
  const std::string group = word.substr(0, colon), kind = word.substr(std::min(colon, word.size() - 1) + 1);
  auto found = std::ranges::find(groups, group, &Groups::value_type::first);
  if (found == groups.end()) found = groups.insert(groups.end(), {group, {}});
  if (std::ranges::find(found->second, kind) == found->second.end()) found->second.push_back(kind);
}

Groups groups_of(const DrawnCounts& counts) {
  Groups groups;
  for (const std::string& word : drawable(counts)) add_word(groups, word);
  for (const auto& [word, cases] : counts)
    if (!word.starts_with("bits:") && !word.starts_with(combination_group)) add_word(groups, word);
  return groups;
}

std::int64_t count_in(const DrawnCounts& counts, const std::string& word) {
  const auto found = counts.find(word);
  return found == counts.end() ? 0 : found->second;
}

Group kinds_tables(const DrawnTotals::Part& run) {
  Group tables{.kind = Group::Kind::tables, .blocks = {}};
  for (const auto& [group, kinds] : groups_of(run.counts)) {
    Table table{"",
                {{.name = theirs(group), .about = "kind drawn"}, {"cases with it", true}, {"share of cases", true}},
                "",
                /*sorts=*/false};
    std::int64_t all = 0;
    std::vector<std::int64_t> cases;
    for (const std::string& kind : kinds)
      all += cases.emplace_back(count_in(run.counts, fmt::format("{}:{}", group, kind)));
    // A group of one word is there or is not: its share is of all cases.
    if (kinds.size() == 1) all = run.judged;
    for (std::size_t i = 0; i < kinds.size(); ++i)
      table.rows.push_back({{theirs(kinds[i]), cases[i], all == 0 ? "–" : share_text(cases[i], all)}});
    tables.blocks.emplace_back(std::move(table));
  }
  return tables;
}

Table bits_table(const DrawnTotals& totals, const std::vector<std::string>& dtypes) {
  Table table{"Judged cases with such a number in what the kernel was sent as q, k and v", columns_of("bits"), "",
              /*sorts=*/false};
  for (const std::string& dtype : dtypes)
    table.columns.push_back({.name = theirs(dtype), .number = true, .about = "cases of a dtype"});
  for (std::size_t i = 0; i < static_cast<std::size_t>(BitClass::count); ++i) {
    const std::string name(name_of(static_cast<BitClass>(i)));
    TableRow& row = table.rows.emplace_back(TableRow{{name}});
    for (const std::string& dtype : dtypes) {
      const DrawnTotals::Part& part = totals.by_dtype.at(dtype);
      const std::int64_t cases = count_in(part.counts, "bits:" + name);
      row.cells.emplace_back(fmt::format("{} ({})", cases, share_text(cases, std::max<std::int64_t>(part.judged, 1))));
    }
  }
  TableRow& last = table.rows.emplace_back(TableRow{{"all judged cases"}});
  for (const std::string& dtype : dtypes) last.cells.emplace_back(totals.by_dtype.at(dtype).judged);
  return table;
}

/// A kernel's rows, its dtypes together.
void add_rows(Table& table, const KernelSummary& kernel, const CombinationCounts& counts) {
  std::set<std::tuple<std::string, Placing, bool>> rows;
  for (const auto& [one, judged] : counts) rows.emplace(one.variants, one.placing, one.grouped);
  for (const auto& [variants, placing, grouped] : rows) {
    TableRow& row = table.rows.emplace_back(
        TableRow{{theirs(kernel.name), theirs(variants), placing_words(placing), grouped ? "grouped" : "each its own"},
                 {.kernel = tags_of(kernel).kernel}});
    for (const Masking masking : {Masking::none, Masking::boolean, Masking::additive}) {
      const auto found = counts.find({variants, placing, grouped, masking});
      if (found == counts.end())
        row.cells.emplace_back("–");
      else
        row.cells.emplace_back(found->second == 0 ? "never" : with_commas(found->second));
    }
  }
}

/// Of kernels that list a variant; without rows where there are none.
Table combinations_table(const Summary& summary) {
  Table table{"Judged cases of variants, by what else the case has; a dash: the manifest offers no such case",
              {columns_of("kernel|variants|causal form|heads of k and v")},
              "",
              /*sorts=*/false};
  for (const char* const mask : {"no mask", "bool mask", "additive mask"})
    table.columns.push_back({.name = mask, .number = true, .about = "judged in combination"});
  for (auto kernel = summary.kernels.begin(); kernel != summary.kernels.end();) {
    CombinationCounts counts;
    const auto first = kernel;
    for (; kernel != summary.kernels.end() && kernel->id == first->id; ++kernel)
      for (const auto& [one, judged] : kernel->combinations) counts[one] += judged;
    add_rows(table, *first, counts);
  }
  return table;
}

Table scarce_table(const Summary& summary) {
  Table table{"", columns_of("property|kernel|dtype|cases with|#judged with it|#of judged|#enough"), "",
              /*sorts=*/false};
  for (const Scarce& one : summary.scarce) {
    table.rows.push_back(
        {{theirs(one.property), theirs(one.kernel), theirs(one.dtype),
          one.what + (one.ruled_out ? " (ruled out by the manifest)" : ""), one.cases, one.judged, one.enough}});
  }
  return table;
}

}  // namespace

Blocks drawn_page(const Reported& run) {
  const Summary& summary = run.summary;
  const DrawnTotals totals = summary.drawn();
  if (totals.run.counts.empty()) return {};
  std::vector<std::string> dtypes = dtypes_of(summary);
  std::erase_if(dtypes, [&](const std::string& dtype) { return !totals.by_dtype.contains(dtype); });
  Blocks blocks;
  if (!summary.scarce.empty()) {
    blocks = {
        Paragraph{"Too few judged cases had what these properties are about: that they held says little.", "warning"},
        scarce_table(summary)};
  }
  blocks.emplace_back(kinds_tables(totals.run));
  blocks.emplace_back(bits_table(totals, dtypes));
  if (Table combinations = combinations_table(summary); !combinations.rows.empty())
    blocks.emplace_back(std::move(combinations));
  return blocks;
}

Brief drawn_brief(const Reported& run) {
  const Summary& summary = run.summary;
  Listing listing;
  for (const Scarce& one : summary.scarce) {
    listing.items.push_back(
        {theirs(one.property), " by ", theirs(one.kernel), " in ", theirs(one.dtype),
         fmt::format(": {} of {} judged cases with {}; {}", one.cases, one.judged, one.what,
                     one.ruled_out ? "the manifest rules them out" : fmt::format("{} would do", one.enough))});
  }
  return {"Drawn too rarely",
          "entries",
          {Paragraph{"That these held says little: few of their cases are of the kind that they are about."}},
          {std::move(listing)}};
}

}  // namespace attest
