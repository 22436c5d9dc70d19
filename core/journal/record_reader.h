// Records from the members of their lines. Each throws BadLine for what is wrong with it.
#pragma once

#include "core/journal/journal.h"
#include "core/journal/reader.h"
#include "core/support/members.h"

namespace attest {

/// `stamped`: the line has a number and a checksum.
[[nodiscard]] RunRecord run_of(Members& members, bool stamped);
[[nodiscard]] MetaRecord meta_of(Members& members);
[[nodiscard]] KernelRecord kernel_of(Members& members);
/// Whatever else the line holds is not looked at.
[[nodiscard]] BatchHead head_of(Members& members, const JournalRules& rules);
/// Of a batch of that run, whose counts must add up.
[[nodiscard]] BatchRecord batch_of(Members& members, const JournalRules& rules, const RunRecord& run);
[[nodiscard]] FindingRecord finding_of(Members& members, const JournalRules& rules);
[[nodiscard]] ProofRecord proof_of(Members& members, const JournalRules& rules);

}  // namespace attest
