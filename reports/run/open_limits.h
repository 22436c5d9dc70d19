// Before a run: the limits that a kernel has and its manifest leaves open (find_limits.h). The run takes them for
// stated, so that cases are made to fit, and its journal keeps them in the kernel's record: every job, shard and
// --resume uses the same. During the run what a kernel refuses is only counted.
#pragma once

#include <memory>
#include <vector>

#include "core/journal/journal.h"
#include "core/kernel/kernel_under_test.h"

namespace attest {

/// The kernel, under the limits that `earlier` has of it, or else under those that a clone of it is found to have.
/// Those found are said on standard error, each with the numbers and the key to put into the manifest, and added to
/// `notes`. A kernel that comes with the project, or states what it takes, comes back as it is. Throws Abandoned where
/// the run is to end.
[[nodiscard]] std::unique_ptr<Kernel> within_open_limits(std::unique_ptr<Kernel> kernel, const Journal& earlier,
                                                         std::vector<MetaRecord>& notes);

}  // namespace attest
