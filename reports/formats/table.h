// The end of a run on a terminal.
#pragma once

#include <string>

#include "reports/conclusion/conclusion.h"
#include "reports/run/engine.h"

namespace attest {

/// A row per kernel and dtype: verdict, judged and excused cases, of how many laws about bits that it does not claim it
/// found every bit the same, worst utilisation and its property; how far they were held against the exact answer
/// (reach_lines); then a line for each property that was violated, inconclusive, or skipped whole, with the reason.
[[nodiscard]] std::string table_of(const Summary& summary);

/// A line for each kernel and dtype some of whose cases were skipped: how many, and the commonest reason with its
/// count. Properties that are about something else than this kernel (another entry, the core) do not count. Empty where
/// no case was skipped.
[[nodiscard]] std::string skipped_text(const Summary& summary);
/// The properties that no kernel was judged by; empty where there is none.
[[nodiscard]] std::string unjudged_text(const Summary& summary);

/// A line for each property that means little because what it wants was drawn too rarely; empty where none does.
[[nodiscard]] std::string warning_text(const Summary& summary);

/// A line for each note on a kernel; empty where there is none.
[[nodiscard]] std::string note_text(const Summary& summary);

/// What the alarm says, in a line and one more for each property and kernel that raised it; empty where none was asked
/// for.
[[nodiscard]] std::string alarm_text(const Summary& summary);

/// "held: 39 of 41 properties that concern this kernel judged; 14,853 cases; never judged: M > 129, H > 4; 2 m 10 s",
/// and how the run ended when not by itself; behind it a line for a quick look.
[[nodiscard]] std::string closing_line(const Conclusion& conclusion, Ending ending, double seconds);

/// What the run was held against beside the laws, for standard output: a line for each difference to the baseline and
/// for each violation that is new or gone, and, unless `quiet`, how many there are of each.
[[nodiscard]] std::string expectations_text(const Conclusion& conclusion, bool quiet);
/// And for standard error: a line for each known finding of which the run says nothing, unless `quiet`, and for each
/// name that was passed over.
[[nodiscard]] std::string passed_over_text(const Conclusion& conclusion, bool quiet);

}  // namespace attest
