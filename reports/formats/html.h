// The report: one self-contained HTML page.
#pragma once

#include <string>

#include "reports/conclusion/conclusion.h"

namespace attest {

/// The page for a summary and the canonical journal (with meta, where it is known) it came from. `folder` is the run's,
/// for replay lines; empty: unknown. Every string that came from outside is escaped; the page loads nothing.
[[nodiscard]] std::string html_page(const Summary& summary, const Journal& journal, const std::string& folder,
                                    const Conclusion& conclusion);

}  // namespace attest
