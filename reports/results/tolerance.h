// The tolerance table: how large the errors of a run were, by class of case, and which tolerances would have accepted
// every right answer in it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/measure/error_statistics.h"
#include "core/measure/verdict.h"
#include "reports/results/summary.h"

namespace attest {

/// |found - exact| <= atol + rtol |exact|.
struct Tolerance {
  double atol = 0, rtol = 0;
};

/// Of the pairs that accept every answer within its bound that `cell` saw: the smallest relative tolerance of which
/// four times as much would not halve the absolute one. `unit` is the unit roundoff of the output, `least` its smallest
/// normal number, below which no absolute tolerance but 0 is suggested: a test-suite that flushes subnormal numbers
/// would have none. Both are rounded up to two digits. Absolute infinity where no pair would do.
[[nodiscard]] Tolerance suggested(const ErrorCell& cell, double unit, double least = 0);

/// One line of the table: a kernel in a dtype on a class of cases.
struct ToleranceRow {
  std::string kernel;      ///< its id
  std::string name;        ///< as people call it
  std::string dtype;       ///< of inputs and output
  std::string accumulate;  ///< format of the sums over keys, as the manifest has it; empty: it does not say
  std::string property;
  std::string gradient = {};  ///< "dq", …: what was measured; empty: the output
  /// "all", or a class; "not drawn": values that came from a file; "ordinary" (is_ordinary): inputs such as most
  /// test-suites have, whose tolerance is the one to copy.
  std::string keys = "all", mask = "all", values = "all";
  bool bred = false;  ///< by a campaign, to be as hard as can be: none of them is ordinary, and none suggests anything
  std::vector<std::string> case_files = {};  ///< those that the run judged, by k; empty where it drew its cases
  ErrorCell cell;
  /// suggested(cell); of ordinary rows twice that, since other inputs have other errors. Of bred cases it means
  /// nothing.
  Tolerance tolerance;
  /// What the alarm said of all cases; nothing in a row of a class, or where none was asked for.
  std::optional<Alarm> alarm = {};
  /// Of ordinary rows: the planted faults that the tolerance misses on half of the ordinary cases that show them, or on
  /// more, and of how many that are measured in the dtype (fault_margins.h).
  std::vector<std::string_view> missed = {};
  std::int64_t missed_of = 0;
  /// Of ordinary rows: cases with more than 64 keys.
  std::int64_t long_cases = 0;
  /// Fewer cases, or long ones, than a tolerance to copy should come from; empty where there are enough, and in rows
  /// that are not ordinary. "from 66 ordinary cases, 2 of more than 64 keys: too few to rely on"
  [[nodiscard]] std::string caution() const;
  /// "f32", or "f32 dq".
  [[nodiscard]] std::string label() const { return gradient.empty() ? dtype : dtype + " " + gradient; }
  /// Of all cases.
  [[nodiscard]] bool is_whole() const { return keys == "all" && mask == "all" && values == "all"; }
  [[nodiscard]] bool is_ordinary() const { return values == "ordinary"; }
  /// The case of the worst error, and what it is the worst of; of journals that do not name it, that of the worst
  /// utilisation.
  [[nodiscard]] std::int64_t rerun_k() const { return cell.error_k >= 0 ? cell.error_k : cell.worst_k; }
  [[nodiscard]] std::string_view rerun_of() const { return cell.error_k >= 0 ? "worst_error" : "worst_utilisation"; }
};

/// For each kernel and dtype whose errors were measured: all cases; the ordinary ones, and those by number of keys
/// where they are of several classes; then every class of numbers of keys, every effect of a mask, every kind of values
/// by itself, and last every combination of the three that occurred.
[[nodiscard]] std::vector<ToleranceRow> tolerance_rows(const Summary& summary, const Journal& journal);

/// The line that runs case k of the row again, its worst_k or error_k, and no other; empty for cases that were neither
/// drawn by a check nor given to it as files, and for k < 0.
[[nodiscard]] std::string rerun_line(const ToleranceRow& row, const Summary& summary, std::int64_t k);
/// The line that runs case k of a property again, and no other, of a run that drew the `shapes` (RunRecord::shapes).
[[nodiscard]] std::string rerun_line(const std::string& kernel, const std::string& dtype, const std::string& property,
                                     std::uint64_t seed, std::string_view shapes, std::int64_t k);

inline constexpr std::string_view tolerances_schema = "attest-tolerances/1";
/// The rows as JSON, with what a later run is held against (figures.h), and as CSV with a heading line. Each row says
/// what the errors were held against: the proved bound; the probabilistic one, where the alarm was asked for, in rows
/// of all cases; and the worst error known, over u sum of weight times |v|, a lower bound of the true worst and
/// empirical.
[[nodiscard]] std::string tolerances_json(const std::vector<ToleranceRow>& rows, const Summary& summary,
                                          const Journal& journal);
[[nodiscard]] std::string tolerances_csv(const std::vector<ToleranceRow>& rows, const Summary& summary);

/// Of each kernel and dtype the row for a test-suite: the ordinary one; that of all cases where there is none, as of
/// captured ones. None of a campaign.
[[nodiscard]] std::vector<ToleranceRow> rows_for_suites(const std::vector<ToleranceRow>& rows);

/// What a test-suite is to use, as TOML: a table [KERNEL.DTYPE] with the floats atol and rtol for each kernel and
/// dtype, from rows_for_suites, and where they come from as comments. A kernel's name is the manifest's, or its id
/// where two have the same.
[[nodiscard]] std::string tolerances_toml(const std::vector<ToleranceRow>& rows, const Summary& summary);

}  // namespace attest
