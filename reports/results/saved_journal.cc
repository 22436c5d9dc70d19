#include "reports/results/saved_journal.h"

#include <fmt/format.h>

#include <algorithm>

#include "reports/causes/causes.h"
#include "reports/causes/explanations.h"
#include "reports/run_folder/journal_rules.h"

namespace attest {

Journal read_results(const std::filesystem::path& folder) {
  const std::filesystem::path folders[] = {folder};
  MergedJournals merged = merge_journals(folders, journal_rules());
  Journal& journal = merged.journal;
  journal.meta = std::move(merged.parts[0].meta);
  journal.notes = std::move(merged.parts[0].notes);
  drop_overtaken(journal.meta);
  return journal;
}

void drop_overtaken(std::vector<MetaRecord>& meta) {
  const auto last_begin = std::ranges::find(meta.rbegin(), meta.rend(), "begin", &MetaRecord::event).base();
  const auto overtaken = std::remove_if(meta.begin(), last_begin, [](const MetaRecord& record) {
    return record.event == explanation_event || record.event == cause_event || record.event == asked_event;
  });
  meta.erase(overtaken, last_begin);
}

MetaRecord record_of(const Asked& asked) {
  MetaRecord record{asked_event, {{"option", asked.option}, {"name", asked.name}}};
  for (const std::string& answer : asked.answers)
    record.facts[fmt::format("answer {}", record.facts.size() - 1)] = answer;
  return record;
}

std::vector<Asked> asked_in(const std::vector<MetaRecord>& meta) {
  std::vector<Asked> all;
  for (const MetaRecord& record : meta) {
    if (record.event != asked_event) continue;
    Asked one;
    for (const auto& [fact, text] : record.facts) {
      if (fact == "option") one.option = text;
      if (fact == "name") one.name = text;
      if (fact.starts_with("answer ")) one.answers.insert(text);
    }
    if (std::ranges::find(all, one) == all.end()) all.push_back(std::move(one));
  }
  return all;
}

}  // namespace attest
