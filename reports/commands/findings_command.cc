#include <fmt/format.h>

#include "reports/command_line/option_values.h"
#include "reports/commands/commands.h"
#include "reports/formats/table.h"
#include "reports/results/saved_journal.h"
#include "reports/run/progress.h"
#include "reports/text/wrap.h"

namespace attest {
namespace {

struct FindingsOptions {
  std::vector<std::filesystem::path> runs;

  void declare(OptionList& list) { list.several("RUN", runs, any_text("RUN", files), "the folder of a run"); }
  void refuse() const {
    refuse_if(runs.size() != 1, fmt::format("attest findings takes one RUN, not {}", runs.size()));
  }
};

int print_findings(const FindingsOptions& options) {
  const std::filesystem::path& folder = options.runs.front();
  const Journal journal = read_results(folder);
  const Summary summary = summarise(journal, folder);
  std::string text;
  for (const FindingRecord& finding : journal.findings) text += describe(finding, folder.string());
  text += warning_text(summary) + note_text(summary);
  text += table_of(summary) + skipped_text(summary) + unjudged_text(summary) + alarm_text(summary);
  const Conclusion conclusion = conclude(summary);
  text += fmt::format("\n{}: {}\n", conclusion.headline, conclusion.coverage);
  fmt::print("{}", wrapped(text, terminal_columns()));
  return 0;
}

}  // namespace

Command findings_command() {
  return {with_options<FindingsOptions>(print_findings), "findings", "attest findings RUN",
          "Prints everything that a run found: each finding with the line that replays it, a line for each kernel and "
          "dtype and for each property that is violated or undecided, warnings and notes.",
          "attest findings attest-run-001"};
}

}  // namespace attest
