// What a kernel refuses although its manifest offers it.
#pragma once

#include <string>

#include "reports/results/summary.h"

namespace attest {

/// A sentence for the notes on the kernel where it answered `unsupported` so often that a property which its manifest
/// lets it be asked was judged on fewer cases than mean something (enough_of): it is not held by what it offers. Empty
/// where there is no such property.
[[nodiscard]] std::string refusals_text(const KernelSummary& kernel);

}  // namespace attest
