// Pieces that the sections of the report share. What they are given may come from anywhere; what they return is HTML.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reports/results/summary.h"

namespace attest {

/// The text with & < > " ' as entities, and U+FFFD for what is not seen (visible.h) but line breaks and tabs.
[[nodiscard]] std::string escaped(std::string_view text);

/// The outcome as a coloured word with a sign; `words` instead of its name.
[[nodiscard]] std::string badge(Outcome outcome, std::string_view words = {});

/// The id of the kernel's place in "By kernel".
[[nodiscard]] std::string anchor_of(const KernelSummary& kernel);
/// The id of the place of a property's findings.
[[nodiscard]] std::string anchor_of(const KernelSummary& kernel, const PropertySummary& property);

/// Attributes by which the page's filter hides an element; an empty word is left out. `kernel` is what people may type
/// to find it: a kernel's names and a dtype.
[[nodiscard]] std::string tags(std::string_view kernel, std::string_view property, std::string_view verdict);
/// The first of these for a kernel in a dtype.
[[nodiscard]] std::string kernel_words(const KernelSummary& kernel);

/// A column of a table: what heads it, whether it holds numbers, and what heads it and its neighbours of that group.
struct Column {
  std::string_view name;
  bool number = false;
  std::string_view group = {};
};
/// A table that scrolls by itself where the page is too narrow and, where scripts run, sorts by its headings.
/// `rows` is HTML; the others are text of the program's own. `kind` is a class of the style sheet; may be empty.
[[nodiscard]] std::string table_html(std::string_view caption, const std::vector<Column>& columns,
                                     const std::string& rows, std::string_view kind = {});

/// A cell with a number; what is given is HTML.
[[nodiscard]] std::string number_cell(std::string_view number);
[[nodiscard]] std::string number_cell(std::int64_t number);

/// A line for a shell that is shown when asked for, so that it makes no table tall; `label` and `line` are text.
[[nodiscard]] std::string folded_line(std::string_view label, std::string_view line);

/// The worst utilisation; a dash where no case was judged.
[[nodiscard]] std::string worst_text(const Tally& tally);

}  // namespace attest
