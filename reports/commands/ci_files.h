// What CI reads of a run: the files of --junit and --sarif, alike from every command that judges or joins runs.
#pragma once

#include <filesystem>
#include <string>

#include "core/journal/journal.h"
#include "reports/command_line/option_values.h"
#include "reports/results/conclusion.h"

namespace attest {

struct CiFiles {
  std::filesystem::path junit, sarif;  ///< empty: none

  void declare(OptionList& list) {
    list.option(
        "--junit", junit, file_name(),
        "write JUnit XML there: a suite per kernel and dtype, a test per property, failures with the lines that "
        "replay them");
    list.option("--sarif", sarif, file_name(), "write the findings there as SARIF 2.1.0, for code scanning");
  }
  /// Before a run, so that none is lost to them: throws UsageError where a file has no folder to stand in.
  void refuse_homeless() const;
  /// Writes them. `folder` is the run's, for the lines that replay its cases.
  void write(const Summary& summary, const Journal& journal, const std::string& folder,
             const Conclusion& conclusion) const;
};

}  // namespace attest
