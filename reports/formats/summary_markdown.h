// summary.md: a run in Markdown, for the summary of a CI step or a comment on a change.
#pragma once

#include <cstddef>
#include <string>

#include "core/journal/journal.h"
#include "reports/conclusion/conclusion.h"

namespace attest {

/// What to_markdown never exceeds, in bytes: the longest comment that GitHub takes.
inline constexpr std::size_t markdown_limit = 65536;

/// Verdict, what changed, kernels by dtype, findings with the lines that replay them, the worst known cases, what was
/// drawn too rarely, notes, and what was not covered. What does not fit is cut, a whole entry at a time, and a line
/// says how many entries of what were; a section without room for that line is left out. Whatever comes from a kernel,
/// a manifest or a path stands in code, where nothing of it is Markdown, HTML, a link or a mention. `folder` is the
/// run's, for the lines to replay.
[[nodiscard]] std::string to_markdown(const Summary& summary, const Journal& journal, const std::string& folder,
                                      const Conclusion& conclusion);

/// What to_comment never exceeds: as much as somebody reads below a change.
inline constexpr std::size_t comment_lines = 40;

/// Of the same the verdict, the first causes, what is otherwise than in the baseline, and the first kernels.
[[nodiscard]] std::string to_comment(const Summary& summary, const Journal& journal, const std::string& folder,
                                     const Conclusion& conclusion);

}  // namespace attest
