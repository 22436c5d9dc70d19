// What CI reads of a run: the files of --junit and --sarif, alike from every command that judges or joins runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attest/journal.h"
#include "known.h"
#include "options.h"
#include "summary.h"

namespace attest {

/// Before a run, so that none is lost to them: throws UsageError where a file of options.junit or options.sarif has no
/// folder to stand in.
void refuse_homeless_ci_files(const Options& options);

/// Writes the files of options.junit and options.sarif, as far as they are named. `folder` is the run's, for the lines
/// that replay its cases. `known`: what the file of known findings makes of the run; nothing where there is none.
/// `problems`: what makes the exit status 1 beside verdicts and known findings, a line each.
void write_ci_files(const Options& options, const Summary& summary, const Journal& journal, const std::string& folder,
                    const std::optional<KnownComparison>& known = {}, const std::vector<std::string>& problems = {});

}  // namespace attest
