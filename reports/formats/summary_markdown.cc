#include "reports/formats/summary_markdown.h"

#include <fmt/format.h>

#include <algorithm>

#include "reports/page/print.h"
#include "reports/sections/sections.h"

namespace attest {
namespace {

/// How much room a Markdown text has, and each section of it; what a section leaves the next ones have.
struct Room {
  std::size_t limit;
  std::size_t Section::* share;
  std::size_t (*size)(const std::string& text);
  std::size_t cut_line;  ///< the most that the line takes that says what was cut
};
constexpr Room bytes{markdown_limit, &Section::share, [](const std::string& text) { return text.size(); }, 160};
constexpr Room lines{comment_lines, &Section::lines,
                     [](const std::string& text) { return static_cast<std::size_t>(std::ranges::count(text, '\n')); },
                     2};

std::string markdown_within(const Room& room, const Reported& run) {
  std::size_t shares = 0;
  for (const Section& section : sections) shares += section.*room.share;
  if (shares == 0) return {};
  std::string whole;
  std::size_t allowance = 0;
  for (const Section& section : sections) {
    if (section.brief == nullptr || section.*room.share == 0) continue;
    const Brief brief = section.brief(run);
    if (brief.what.empty()) continue;
    allowance += section.*room.share * room.limit / shares;
    const auto [head, entries, after] = markdown_entries(brief.entries);
    if (entries.empty()) continue;
    std::string text =
        (brief.heading.empty() ? "" : fmt::format("\n### {}\n\n", brief.heading)) + markdown_of(brief.before) + head;
    std::size_t shown = 0;
    for (; shown < entries.size(); ++shown) {
      const std::size_t behind = shown + 1 < entries.size() ? room.cut_line : 0;
      if (room.size(text) + room.size(entries[shown]) + room.size(after) + behind > allowance) break;
      text += entries[shown];
    }
    text += after;
    // With no room for what it would be cut to.
    if (shown == 0 && room.size(text) + room.cut_line > allowance) continue;
    if (shown < entries.size())
      text += fmt::format("\n_Cut here: {} of {} {}; the report has them all._\n", entries.size() - shown,
                          entries.size(), brief.what);
    allowance -= std::min(allowance, room.size(text));
    whole += text;
    // Of kernels it would say that none was judged.
    if (holds_proofs_alone(run.summary, run.journal)) break;
  }
  return whole;
}

}  // namespace

std::string to_markdown(const Summary& summary, const Journal& journal, const std::string& folder,
                        const Conclusion& conclusion) {
  return markdown_within(bytes, {summary, journal, folder, conclusion});
}

std::string to_comment(const Summary& summary, const Journal& journal, const std::string& folder,
                       const Conclusion& conclusion) {
  return markdown_within(lines, {summary, journal, folder, conclusion});
}

}  // namespace attest
