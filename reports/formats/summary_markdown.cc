#include "reports/formats/summary_markdown.h"

#include <fmt/format.h>

#include <algorithm>

#include "reports/page/print.h"
#include "reports/sections/sections.h"

namespace attest {
namespace {

constexpr std::size_t sum_of_shares() {
  std::size_t sum = 0;
  for (const Section& section : sections) sum += section.share;
  return sum;
}

}  // namespace

std::string to_markdown(const Summary& summary, const Journal& journal, const std::string& folder,
                        const Conclusion& conclusion) {
  // The longest that a cut line can be.
  constexpr std::size_t cut_line = 160;
  std::string whole;
  std::size_t allowance = 0;
  for (const Section& section : sections) {
    if (section.brief == nullptr) continue;
    const Brief brief = section.brief({summary, journal, folder, conclusion});
    if (brief.what.empty()) continue;
    allowance += section.share * markdown_limit / sum_of_shares();
    const auto [head, entries, after] = markdown_entries(brief.entries);
    if (entries.empty()) continue;
    std::string text =
        (brief.heading.empty() ? "" : fmt::format("\n### {}\n\n", brief.heading)) + markdown_of(brief.before) + head;
    std::size_t shown = 0;
    for (; shown < entries.size(); ++shown) {
      if (text.size() + entries[shown].size() + after.size() + cut_line > allowance) break;
      text += entries[shown];
    }
    text += after;
    if (shown < entries.size())
      text += fmt::format("\n_Cut here: {} of {} {}; the report has them all._\n", entries.size() - shown,
                          entries.size(), brief.what);
    allowance -= std::min(allowance, text.size());
    whole += text;
    // Of kernels it would say that none was judged.
    if (holds_proofs_alone(summary, journal)) break;
  }
  return whole;
}

}  // namespace attest
