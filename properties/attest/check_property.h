// One property on one kernel in one dtype: what a test framework asks of the catalogue.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/kernel/kernel_under_test.h"
#include "core/measure/verdict.h"

namespace attest {

/// The names of all properties, in the order of theorems.md.
[[nodiscard]] std::vector<std::string> property_names();

/// How the cases of one property on one kernel in one dtype ended.
struct PropertyReport {
  /// violated if a case is; else inconclusive if too few cases were judged of those that the manifest offers (of 300
  /// cases and more 30, of fewer one in ten); skipped if the manifest offers fewer; else held if one is; else
  /// inconclusive if one is; else skipped.
  Outcome outcome = Outcome::skipped;
  std::int64_t held = 0, skipped = 0, excused = 0, inconclusive = 0;  ///< cases up to the first violated one
  /// held: nothing. violated: the reason, then the shrunk case with all of its numbers, then the line that finds it
  /// again. Otherwise each reason with how many cases gave it, the commonest first, on one line.
  std::string text;
};

/// Has RapidCheck draw so many cases of the property (cases_of in rapidcheck.h), up to the first that is violated,
/// which it shrinks. The variable RC_PARAMS of RapidCheck ("seed=5 max_success=1000 noshrink=1"), where it is set, says
/// other than `cases` and `seed`; without it the same cases come every time. `kernel_option` is what --kernel would be
/// told, for the line in `text` that finds the case again; empty: that line is left out. Throws UsageError for a name
/// that is no property and for an RC_PARAMS that RapidCheck does not read.
[[nodiscard]] PropertyReport check_property(std::string_view property, Kernel& kernel, DType dtype, std::int64_t cases,
                                            std::uint64_t seed = 1, std::string_view kernel_option = {});

}  // namespace attest
