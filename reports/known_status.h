// The exit status of a run that is held against the violations expected of it.
#pragma once

#include "known.h"
#include "options.h"
#include "summary.h"

namespace attest {

/// Prints what the findings of options.known make of the run: a line for each violation that is new or gone, and,
/// without --quiet, remarks and a closing line. 1 where there is such a violation, else exit_status of the rest.
[[nodiscard]] int status_with_known(const Options& options, const KnownComparison& comparison);

/// Nothing of a merged run is missing: every subject has one range of cases from 0 on, in no shard, the same for all of
/// them, and no part was stopped before its end.
[[nodiscard]] bool is_whole(const MergedJournals& merged);

}  // namespace attest
