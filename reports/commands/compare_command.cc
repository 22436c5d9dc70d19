#include <fmt/format.h>

#include "core/support/errors.h"
#include "core/support/files.h"
#include "reports/command_line/option_values.h"
#include "reports/commands/commands.h"
#include "reports/conclusion/compare.h"
#include "reports/text/text.h"

namespace attest {
namespace {

struct CompareOptions {
  bool json = false;
  std::filesystem::path output;  ///< empty: standard output
  std::vector<std::filesystem::path> runs;

  void declare(OptionList& list) {
    list.flag("--json", json, "as JSON");
    list.option("-o,--output", output, any_text("FILE", files), "write the comparison there instead of showing it");
    list.several("RUN", runs, any_text("RUN", files),
                 "two runs or more, the earliest first: a run folder, a journal file or a file of tolerances each");
  }
  void refuse() const {
    refuse_if(runs.size() < 2,
              fmt::format("attest compare takes two RUNs or more, the earliest first, not {}", runs.size()));
  }
};

/// The last run is held against the one before it; of more than two there is a trend as well.
int compare_runs(const CompareOptions& options) {
  std::vector<Figures> runs;
  std::vector<std::string> names;
  for (const std::filesystem::path& run : options.runs) {
    runs.push_back(read_figures(run));
    names.push_back(run.string());
  }
  const Comparison comparison = compare(runs[runs.size() - 2], runs.back());
  const std::vector<Trend> trends = runs.size() > 2 ? trends_of(runs) : std::vector<Trend>();
  const ChangesInWords said = in_words(comparison);
  std::string text;
  if (options.json) {
    text = changes_json(comparison, trends, names);
  } else {
    const std::string between =
        trends.empty() ? "" : fmt::format(", from {} to {}", one_line(names[names.size() - 2]), one_line(names.back()));
    text = fmt::format("{}{}{}{}\n{}\n", trends_text(trends, names), changes_text(comparison), said.counts, between,
                       said.noise);
  }
  if (options.output.empty())
    fmt::print("{}", text);
  else
    write_file_atomically(options.output, text);
  return comparison.count(Direction::worse) > 0 ? 1 : 0;
}

}  // namespace

Command compare_command() {
  return {with_options<CompareOptions>(compare_runs), "compare", "attest compare RUN RUN... [OPTIONS]",
          "Says what became worse and what better from one run to another, beyond the noise between two runs of one "
          "kernel: verdicts, errors, worst cases, coverage, claims. Of more than two runs it shows the trend, and the "
          "last two are held against each other. Exit 1 where something became worse.",
          "attest compare tolerances.json attest-run-002"};
}

}  // namespace attest
