// The formats that CI and other tools read. A row here, and every command that judges or joins runs has an option that
// writes the format to a file.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "core/journal/journal.h"
#include "reports/conclusion/conclusion.h"
#include "reports/formats/badge.h"
#include "reports/formats/junit.h"
#include "reports/formats/sarif.h"
#include "reports/formats/summary_markdown.h"

namespace attest {

struct ReportFormat {
  std::string_view option;  ///< that names the file: "--junit"
  std::string_view help;
  /// What the file holds. `folder` is the run's, for the lines that replay its cases; empty for several.
  std::string (*text)(const Summary& summary, const Journal& journal, const std::string& folder,
                      const Conclusion& conclusion);
};
inline constexpr std::array report_formats{
    ReportFormat{
        "--junit",
        "write JUnit XML there: a suite per kernel and dtype, a test per property, failures with the lines that "
        "replay them",
        to_junit},
    ReportFormat{"--sarif", "write the findings there as SARIF 2.1.0, for code scanning", to_sarif},
    ReportFormat{
        "--comment",
        "write verdict, causes and what changed there in at most 40 lines of Markdown, for a comment on a change",
        to_comment},
    ReportFormat{"--badge", "write the verdict there as a badge, an SVG picture", to_badge},
    ReportFormat{"--badge-json", "write the badge's words there, as services that draw badges read them",
                 to_badge_json},
};

}  // namespace attest
