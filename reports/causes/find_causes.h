// The causes of a run's findings, found when it is over.
#pragma once

#include <vector>

#include "properties/road/road.h"
#include "reports/causes/causes.h"
#include "reports/run/engine.h"

namespace attest {

/// Those of every kernel that has violated cases, the one with most of them first. Cases are drawn again for their
/// traits (conditions.h), some thousands at most, and cases of findings are put to the kernel once each
/// (misreadings.h). A finding whose file is not there is passed over. Throws Abandoned on an interrupt.
[[nodiscard]] std::vector<Cause> causes_of(const Journal& journal, const RunFolder& folder, const Plan& plan,
                                           const Road& road);

}  // namespace attest
