// The report's parts about what was drawn and about bits that agreed.
#pragma once

#include <string>

#include "reports/results/summary.h"

namespace attest {

/// A table for each group of kinds, kinds that the generators know and the run never drew included, one of bit classes
/// by dtype, and one of what was too little. Empty where nothing was drawn: captured cases, or a journal of before it
/// held these counts.
[[nodiscard]] std::string drawn_html(const Summary& summary);

/// Of laws about bits that the kernel does not claim, how they turned out; empty where there were none.
[[nodiscard]] std::string unclaimed_bits_html(const KernelSummary& kernel);

}  // namespace attest
