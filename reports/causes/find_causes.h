// The causes of a run's findings, found when it is over.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/kernel/kernel_under_test.h"
#include "properties/road/road.h"
#include "reports/causes/causes.h"
#include "reports/run_folder/run_folder.h"

namespace attest {

/// By what the cases of a run can be drawn once more.
struct HowDrawn {
  const Road& road;
  std::uint64_t seed = 1;
  Shard shard;
};

/// Those of every kernel that has violated cases, the one with most of them first. Cases are drawn again for their
/// traits (conditions.h), some thousands at most; where there is no `draw`, as of captured cases and of campaigns, what
/// is violated of a kernel is one cause. Cases of findings are put to the kernel, with some others (misreadings.h,
/// right_nearby.h). A finding whose file is not there is passed over. Throws Abandoned on an interrupt.
[[nodiscard]] std::vector<Cause> causes_of(const Journal& journal, const RunFolder& folder,
                                           std::span<const std::unique_ptr<Kernel>> kernels, const HowDrawn* draw);

}  // namespace attest
