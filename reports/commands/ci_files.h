// What CI reads of a run: the files of --junit and --sarif, alike from every command that judges or joins runs.
#pragma once

#include <string>

#include "core/journal/journal.h"
#include "reports/command_line/options.h"
#include "reports/results/conclusion.h"

namespace attest {

/// Before a run, so that none is lost to them: throws UsageError where a file of options.junit or options.sarif has no
/// folder to stand in.
void refuse_homeless_ci_files(const Options& options);

/// Writes the files of options.junit and options.sarif, as far as they are named. `folder` is the run's, for the lines
/// that replay its cases.
void write_ci_files(const Options& options, const Summary& summary, const Journal& journal, const std::string& folder,
                    const Conclusion& conclusion);

}  // namespace attest
