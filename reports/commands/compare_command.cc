#include <fmt/format.h>

#include "core/support/errors.h"
#include "core/support/files.h"
#include "reports/command_line/option_values.h"
#include "reports/commands/commands.h"
#include "reports/results/compare.h"

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
                 "two runs, the earlier one first: a run folder, a journal file or a file of tolerances each");
  }
  void refuse() const {
    refuse_if(runs.size() != 2,
              fmt::format("attest compare takes two RUNs, the earlier one first, not {}", runs.size()));
  }
};

int compare_runs(const CompareOptions& options) {
  const Comparison comparison = compare(read_figures(options.runs[0]), read_figures(options.runs[1]));
  const ChangesInWords said = in_words(comparison);
  const std::string text = options.json ? changes_json(comparison)
                                        : fmt::format("{}{}\n{}\n", changes_text(comparison), said.counts, said.noise);
  if (options.output.empty())
    fmt::print("{}", text);
  else
    write_file_atomically(options.output, text);
  return comparison.count(Direction::worse) > 0 ? 1 : 0;
}

}  // namespace

Command compare_command() {
  return {with_options<CompareOptions>(compare_runs), "compare", "attest compare RUN RUN [OPTIONS]",
          "Says what became worse and what better from one run to another, beyond the noise between two runs of one "
          "kernel: verdicts, errors, worst cases, coverage, claims. Exit 1 where something became worse.",
          "attest compare tolerances.json attest-run-002"};
}

}  // namespace attest
