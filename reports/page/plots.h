// The report's plots: Vega's specifications with their data, and the parts of the page that draw them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

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

/// JSON as it may stand inside <script>: no <, > or &, and no U+2028 or U+2029, which some parsers take for newlines.
[[nodiscard]] std::string json_for_script(std::string_view json);

}  // namespace attest
