#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <set>
#include <vector>

#include "reports/sections/sections.h"
#include "reports/text/text.h"

namespace attest {
namespace {

std::string signed_number(double value) {
  return fmt::format("{}{:.2g}", value < 0 ? "−" : "", std::abs(value));
}

using Cells = std::vector<TableCell>;

Cells& operator+=(Cells& cells, const Cells& more) {
  cells.insert(cells.end(), more.begin(), more.end());
  return cells;
}

/// The cells of both tables from the worst error to the condition.
Cells errors_of(const ErrorCell& cell) {
  Cells cells;
  for (const double size : {size_of_code(cell.worst_error), size_of_code(cell.worst_ulp),
                            size_of_code(cell.worst_utilisation), cell.quantile(0.999), cell.root_mean_square()})
    cells.emplace_back(short_number(size));
  return cells += {signed_number(cell.mean()), short_number(size_of_code(cell.condition))};
}

constexpr std::string_view error_columns = "#worst error|#worst ulp|#worst|#p99.9|#rms|#bias|#condition";

/// A dash twice, for atol and rtol, and why.
Cells none_since(std::string_view why) {
  const Piece none{"–", Piece::Kind::noted, why};
  return {none, none};
}

Cells tolerance_of(const ToleranceRow& row) {
  if (row.bred) return none_since("a campaign breeds its cases to be hard");
  return {short_number(row.tolerance.atol), short_number(row.tolerance.rtol)};
}

Piece worst_case_of(const ToleranceRow& row, const Summary& summary) {
  const std::string line = rerun_line(row, summary, row.cell.worst_k), label = fmt::format("case {}", row.cell.worst_k);
  return line.empty() ? Piece(label) : folded_line(label, line);
}

/// The planted faults that the tolerance lets pass.
Piece missed_by(const ToleranceRow& row) {
  if (row.missed_of == 0) return "–";
  const std::string count = fmt::format("{} of {}", row.missed.size(), row.missed_of);
  return row.missed.empty() ? Piece(count) : folded_line(count, fmt::format("{}", fmt::join(row.missed, ", ")));
}

/// How many of the three are not "all".
int classes_of(const ToleranceRow& row) {
  return (row.keys != "all" ? 1 : 0) + (row.mask != "all" ? 1 : 0) + (row.values != "all" ? 1 : 0);
}

std::string words_of(const ToleranceRow& row) {
  return fmt::format("{}{} {}", row.name, row.kernel == row.name ? "" : " " + row.kernel, row.dtype);
}

/// The kernels and dtypes whose classes are shown, by the place of their first row: those with the largest errors.
std::set<std::size_t> shown_of(const std::vector<ToleranceRow>& rows) {
  constexpr std::size_t most = 24;
  std::vector<std::pair<LogCode, std::size_t>> whole;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i].is_whole()) whole.emplace_back(infinite_code - rows[i].cell.worst_utilisation, i);
  std::ranges::sort(whole);
  std::set<std::size_t> shown;
  for (std::size_t i = 0; i < std::min(most, whole.size()); ++i) shown.insert(whole[i].second);
  return shown;
}

/// The tolerance to copy, with what speaks against copying it.
Cells suite_tolerance(const ToleranceRow& row) {
  const std::string caution = row.caution();
  if (caution.empty()) return tolerance_of(row);
  const auto doubtful = [&](double number) { return Piece(short_number(number) + " ?", Piece::Kind::noted, caution); };
  return {doubtful(row.tolerance.atol), doubtful(row.tolerance.rtol)};
}

Cells ordinary_cells(const ToleranceRow& row, bool violated) {
  Cells cells{row.cell.cases, short_number(size_of_code(row.cell.worst_error))};
  if (!violated) return (cells += suite_tolerance(row)) += {missed_by(row)};
  // They would be what its mistakes leave.
  return (cells += none_since("of a kernel that is violated none is suggested")) += {"–"};
}

/// A table by class for each kernel and dtype, folded.
Group by_class(const std::vector<ToleranceRow>& rows, const Summary& summary) {
  const std::set<std::size_t> shown = shown_of(rows);
  Group all{.kind = Group::Kind::folded,
            .title = "By class of case: number of keys, effect of the mask, kind of values",
            .blocks = {}};
  std::size_t left_out = 0;
  for (std::size_t i = 0; i < rows.size();) {
    const ToleranceRow& whole = rows[i];
    const bool show = shown.contains(i);
    left_out += show ? 0 : 1;
    Table table{fmt::format("{} in {} by class of case", whole.name, whole.dtype),
                columns_of(fmt::format("by|class|#cases|#elements|{}|#atol|#rtol|worst case", error_columns)), "dense",
                /*sorts=*/true,
                /*heading=*/1};
    for (++i; i < rows.size() && !rows[i].is_whole(); ++i) {
      // Combinations of all three are in the files; a page of hundreds of rows is read by nobody.
      const ToleranceRow& row = rows[i];
      if (!show || (classes_of(row) > 1 && !row.is_ordinary())) continue;
      const auto [what, which] = row.is_ordinary()   ? std::pair("ordinary", row.keys)
                                 : row.keys != "all" ? std::pair("keys", row.keys)
                                 : row.mask != "all" ? std::pair("mask", row.mask)
                                                     : std::pair("values", row.values);
      Cells cells{what, theirs(which), row.cell.cases, row.cell.elements};
      ((cells += errors_of(row.cell)) += tolerance_of(row)) += {worst_case_of(row, summary)};
      table.rows.push_back({std::move(cells)});
    }
    if (!show) continue;
    all.blocks.emplace_back(Group{
        Group::Kind::folded, {title_of(whole.name, whole.dtype), " by class"}, {std::move(table)}, {words_of(whole)}});
  }
  if (left_out > 0) {
    all.blocks.emplace_back(Paragraph{
        fmt::format("By class only where the worst utilisation is largest; {} more kernels × dtypes are in the files.",
                    left_out),
        "note"});
  }
  return all;
}

Group reading() {
  const Text errors = marked(
      "Errors of single elements against the exact answer, of every judged case whose error was measured. **Worst "
      "error** is absolute, **worst ulp** in units of the last place of the exact value in the output's format (large "
      "where an answer nearly cancels). **Worst**, **p99.9**, **rms** and **bias** are shares of the bound that is "
      "proved for the element: the largest, a quantile from above, the root of the mean square, and the mean with its "
      "sign (positive: answers too large; shares beyond 4 count as 4). **Worst case** is that of the worst share; the "
      "worst error may be of another. **Condition** is Σα|v| over |Σαv| at the worst element. Sizes are rounded up, by "
      "at most one part in 64.");
  const Text tolerances = marked(
      "**atol** and **rtol** are for |found − exact| ≤ atol + rtol·|exact|. By class they would have accepted every "
      "answer that lies within its bound; of ordinary inputs, whose scores and values are of order 1 as in most "
      "test-suites, they are twice that, since other inputs have other errors, and a question mark stands where there "
      "were too few such cases. Of six relative tolerances, 0 and 2, 8, 32, 128, 512 times the unit roundoff of the "
      "output, the least absolute one is known; suggested is the smallest relative tolerance of which four times as "
      "much would not halve the absolute one, both rounded up to two digits. They are no bound. **Lets pass** counts "
      "the planted faults that the two miss on half of the ordinary cases that show them, or on more.");
  return {Group::Kind::folded, "How to read it", {Paragraph{errors}, Paragraph{tolerances}}};
}

}  // namespace

Blocks tolerances_page(const std::vector<ToleranceRow>& rows, const Summary& summary) {
  if (rows.empty()) return {};
  std::set<std::pair<std::string, std::string>> violated;
  for (const KernelSummary& kernel : summary.kernels)
    if (kernel.verdict == Outcome::violated) violated.emplace(kernel.id, kernel.dtype);
  Table table{
      "Errors of a kernel in a dtype against the proved bound, of all cases, those made to hurt among them; and the "
      "tolerances to copy, twice what ordinary inputs needed, with the planted faults that they let pass",
      columns_of("kernel|dtype (sums)"), "dense"};
  for (const auto& [names, group] :
       {std::pair(fmt::format("#cases|{}|worst case", error_columns), "all cases"),
        std::pair(std::string("#cases|#worst error|#atol|#rtol|lets pass"), "ordinary cases, to copy")})
    for (Column& column : columns_of(names, group)) table.columns.push_back(std::move(column));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const ToleranceRow& row = rows[i];
    if (!row.is_whole()) continue;
    // The ordinary cases of a kernel in a dtype stand behind all of them.
    const bool has_ordinary = i + 1 < rows.size() && rows[i + 1].is_ordinary() && rows[i + 1].keys == "all";
    const std::string sums = row.accumulate.empty() ? "" : " (" + row.accumulate + ")";
    Cells cells{theirs(row.name), theirs(row.dtype + sums), row.cell.cases};
    ((cells += errors_of(row.cell)) += {worst_case_of(row, summary)}) +=
        has_ordinary ? ordinary_cells(rows[i + 1], violated.contains({row.kernel, row.dtype})) : Cells(5, "–");
    table.rows.push_back({std::move(cells), {words_of(row), row.property}});
  }
  return {std::move(table), reading(), by_class(rows, summary),
          Paragraph{{"Every combination of the three: ", code("attest report RUN --json -o tolerances.json"), ", or ",
                     code("--csv"), "."},
                    "note"}};
}

}  // namespace attest
