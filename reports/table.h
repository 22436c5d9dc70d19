// The end of a run on a terminal.
#pragma once

#include <string>

#include "engine.h"
#include "summary.h"

namespace attest {

/// A row per kernel and dtype: verdict, cases, excused, worst utilisation and its property; then a line for each
/// property that was violated, inconclusive, or skipped whole, with the reason.
[[nodiscard]] std::string table_of(const Summary& summary);

/// What the alarm says, in a line and one more for each property and kernel that raised it; empty where none was asked
/// for.
[[nodiscard]] std::string alarm_text(const Summary& summary);

/// "held: 56000 cases in 2 m 10 s", and how the run ended when not by itself.
[[nodiscard]] std::string closing_line(const Summary& summary, Ending ending, double seconds);

}  // namespace attest
