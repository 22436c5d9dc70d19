#include "reports/run_folder/journal_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <unordered_set>

#include "properties/catalogue/property.h"
#include "reports/text/text.h"

namespace attest {

JournalRules journal_rules(bool salvage) {
  static const auto names = [] {
    std::unordered_set<std::string_view> all;
    for (const Property* const property : catalogue()) all.insert(property->name);
    return all;
  }();
  return {.is_property = [](std::string_view name) { return names.contains(name); }, .salvage = salvage};
}

void say_notes(std::span<const JournalNotes> notes) {
  struct Said {
    std::string text;
    std::filesystem::path first;
    std::size_t more = 0;
  };
  std::vector<Said> all;
  for (const JournalNotes& of_one : notes) {
    for (const std::string& note : of_one.notes) {
      const auto same = std::ranges::find(all, note, &Said::text);
      if (same != all.end() && same->first != of_one.journal)
        ++same->more;
      else
        all.push_back({note, of_one.journal});
    }
  }
  for (const Said& said : all) {
    const std::string others = said.more > 0 ? fmt::format(" and {} more", said.more) : "";
    fmt::print(stderr, "note: {}{}: {}\n", one_line(said.first.string()), others, one_line(said.text));
  }
}

}  // namespace attest
