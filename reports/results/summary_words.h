// A summary in words that several formats have: how far kernels were held against the exact answer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/measure/verdict.h"
#include "reports/results/summary.h"

namespace attest {

/// "M 320, N 8192, dk 256, 8 heads".
[[nodiscard]] std::string reach_text(const Reach& reach);
/// The same of a kernel, or of a property; "unknown" where the journal is of before it was kept, and empty where
/// nothing was held against the exact answer.
[[nodiscard]] std::string reach_text(const KernelSummary& kernel);
[[nodiscard]] std::string reach_text(const Tally& tally);

/// For a terminal, a line for all kernels and dtypes of one reach: "judged against the exact answer up to M 320, N
/// 8192, dk 256, 8 heads". Which they are stands in front where there is more than one reach. None where nothing was
/// checked, and where kernels were compared with each other.
[[nodiscard]] std::vector<std::string> reach_lines(const Summary& summary);

/// What is to be read before any of these: that of each extent it is the largest by itself.
inline constexpr std::string_view reach_explained =
    "the largest M, N, dk and number of heads of cases whose outputs were held against the exact answer, each by "
    "itself; beyond them this run says nothing";

}  // namespace attest
