// What must hold of a journal's records, whoever wrote them.
#pragma once

#include "core/journal/journal.h"
#include "core/support/members.h"

namespace attest {

/// Throws BadLine where the counts of a batch do not add up: its outcomes to the cases of its range that its shard
/// takes (of case files, of which not each is for each property, to no more), what counts judged cases to those, and
/// the like.
void require_adds_up(const BatchRecord& batch, const RunRecord& run);

}  // namespace attest
