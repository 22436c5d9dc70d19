// What a run that goes on must have in common with the one in the folder.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/journal/journal.h"
#include "reports/run_folder/run_folder.h"

namespace attest {

/// The journal of the run to resume; empty for a fresh one. Says on standard error what is to be said of it. `salvage`:
/// what is damaged in it is taken out of the file first, and said. Throws UsageError where it is not of `run` and of
/// the shard; a campaign may go on as a whole where it was run in shards, for all go on behind the last run of any of
/// them.
[[nodiscard]] Journal earlier_journal(const RunFolder& folder, bool salvage, const RunRecord& run, const Shard& shard);

/// Says which case files are missing, and removes those of findings that were never written. To be called where the
/// journal's lock is held.
void look_after_cases(const RunFolder& folder, const Journal& earlier);

/// Throws UsageError where the kernels asked for are not those that `earlier`, the journal in the folder `where`, has
/// cases of. One that did not start, then or now, is no difference where its name matches the other's.
void refuse_other_kernels(const Journal& earlier, std::span<const KernelRecord> asked, const std::string& where);

/// Throws UsageError where fewer cases than some subject has had already are asked for: `option` is how they were.
void refuse_fewer_cases(const Journal& earlier, std::int64_t cases, std::string_view option, const std::string& where);

/// The line that goes on with the run as its last beginning was: "attest check --kernel mine --resume --out run". Empty
/// where the journal does not tell its beginning.
[[nodiscard]] std::string resume_line(const Journal& earlier, const std::string& where);

}  // namespace attest
