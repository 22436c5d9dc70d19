// Pieces that the sections of the report share. What they are given may come from anywhere; what they return is HTML.
#pragma once

#include <string>
#include <string_view>

#include "summary.h"

namespace attest {

/// The text with & < > " ' as entities and control characters as U+FFFD.
[[nodiscard]] std::string escaped(std::string_view text);

/// The outcome as a coloured word with a sign.
[[nodiscard]] std::string badge(Outcome outcome);

/// The id of the kernel's place in "By kernel".
[[nodiscard]] std::string anchor_of(const KernelSummary& kernel);

/// The line that shows a case of the run's folder again, as text.
[[nodiscard]] std::string replay_line(const std::string& folder, const std::string& case_file);

/// The worst utilisation; a dash where no case was judged.
[[nodiscard]] std::string worst_text(const Tally& tally);

}  // namespace attest
