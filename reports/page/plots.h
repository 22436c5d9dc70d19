// The report's plots: Vega's specifications with their data, and the parts of the page that draw them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/measure/error_statistics.h"
#include "reports/results/summary.h"

namespace attest {

/// The parts of the page that draw the plots.
struct PagePlots {
  std::string html;  ///< figures, empty ones that the script fills; a sentence where the program was built without Vega
  std::string script;  ///< the scripts that fill them, to stand at the end of the page; empty without Vega
};

/// Both empty where no errors were measured and no campaign had a course. `campaign`: the ranges of runs of a fuzz
/// campaign as they were finished. `nonce` is what the page's content-security-policy lets run.
[[nodiscard]] PagePlots page_plots(const Summary& summary, const std::vector<BatchRecord>& campaign,
                                   const std::string& nonce);

/// A line of the plot of errors by number of keys.
struct ErrorsByKeys {
  std::string name;
  double worst = 0;                    ///< of more lines than colours tell apart those with the largest are shown
  std::map<int, ScaledError> octaves;  ///< as ErrorTable
};
/// Such plots alone, by their titles; both empty without any.
[[nodiscard]] PagePlots plots_of_errors_by_keys(const std::map<std::string, std::vector<ErrorsByKeys>>& lines,
                                                const std::string& nonce);

/// JSON as it may stand inside <script>: no <, > or &, and no U+2028 or U+2029, which some parsers take for newlines.
[[nodiscard]] std::string json_for_script(std::string_view json);

}  // namespace attest
