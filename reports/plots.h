// The report's plots: Vega's specifications with their data, and the parts of the page that draw them.
#pragma once

#include <string>

#include "summary.h"

namespace attest {

/// The figures, empty ones that the script fills; a sentence instead where the program was built without Vega. Empty
/// where no errors were measured.
[[nodiscard]] std::string plots_html(const Summary& summary);

/// The scripts that fill them, to stand at the end of the page; empty where there is nothing to draw. `nonce` is what
/// the page's content-security-policy lets run.
[[nodiscard]] std::string plots_script(const Summary& summary, const std::string& nonce);

/// JSON as it may stand inside <script>: no <, > or &, and no U+2028 or U+2029, which some parsers take for newlines.
[[nodiscard]] std::string json_for_script(std::string_view json);

}  // namespace attest
