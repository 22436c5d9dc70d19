// attest prove --without: theorems without one of their hypotheses.
#pragma once

#include "reports/command_line/options.h"

namespace attest {

/// A row for each chosen property that states the hypothesis: refuted with its witness, or why none is needed. Exit
/// status 1 where the catalogue is wrong about one. Throws UsageError for a hypothesis that is unknown or that none of
/// them states, and for a folder of witnesses that cannot be written.
int without_command(const Options& options);

}  // namespace attest
