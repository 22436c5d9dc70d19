#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <vector>

#include "reports/sections/sections.h"
#include "reports/text/text.h"

namespace attest {
namespace {

using Cells = std::vector<TableCell>;

Cells& operator+=(Cells& cells, const Cells& more) {
  cells.insert(cells.end(), more.begin(), more.end());
  return cells;
}

/// A dash twice, for atol and rtol, and why.
Cells none_since(std::string_view why) {
  const Piece none{"–", Piece::Kind::noted, why};
  return {none, none};
}

/// The planted faults that the tolerance lets pass.
Piece missed_by(const ToleranceRow& row) {
  if (row.missed_of == 0) return "–";
  const std::string count = fmt::format("{} of {}", row.missed.size(), row.missed_of);
  return row.missed.empty() ? Piece(count) : folded_line(count, fmt::format("{}", fmt::join(row.missed, ", ")));
}

/// The tolerance to copy, with what speaks against copying it.
Cells suite_tolerance(const ToleranceRow& row) {
  const std::string caution = row.caution();
  if (caution.empty()) return {short_number(row.tolerance.atol), short_number(row.tolerance.rtol)};
  const auto doubtful = [&](double number) { return Piece(short_number(number) + " ?", Piece::Kind::noted, caution); };
  return {doubtful(row.tolerance.atol), doubtful(row.tolerance.rtol)};
}

/// atol and rtol stand first: on a phone the rest is beyond the screen.
Cells ordinary_cells(const ToleranceRow& row, bool violated) {
  // They would be what its mistakes leave.
  Cells cells = violated ? none_since("of a kernel that is violated none is suggested") : suite_tolerance(row);
  return cells += {violated ? Piece("–") : missed_by(row), short_number(size_of_code(row.cell.worst_error)),
                   short_number(size_of_code(row.cell.worst_scaled))};
}

/// Of the kernel and dtype whose row of all cases that is: the ordinary cases, which stand behind it; of captured ones
/// all, which are what their owner meets. Null where there is neither.
const ToleranceRow* row_to_copy(const std::vector<ToleranceRow>& rows, std::size_t whole) {
  if (whole + 1 < rows.size() && rows[whole + 1].is_ordinary() && rows[whole + 1].keys == "all")
    return &rows[whole + 1];
  return rows[whole].case_files.empty() ? nullptr : &rows[whole];
}

}  // namespace

Blocks tolerances_page(const std::vector<ToleranceRow>& rows, const Summary& summary) {
  if (rows.empty()) return {};
  std::set<std::pair<std::string, std::string>> violated;
  for (const KernelSummary& kernel : summary.kernels)
    if (kernel.verdict == Outcome::violated) violated.emplace(kernel.id, kernel.dtype);
  Table table{"To copy: |found − exact| ≤ atol + rtol·|exact|", columns_of("kernel|dtype"), "dense"};
  for (const auto& [names, group] :
       {std::pair("#atol|#rtol|lets pass|#error, ordinary|#ordinary, in u Σα¦v¦", "ordinary inputs"),
        std::pair("#worst share|#subnormal rounding", "all inputs")})
    for (Column& column : columns_of(names, group)) table.columns.push_back(std::move(column));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const ToleranceRow& row = rows[i];
    if (!row.is_whole()) continue;
    Cells cells{theirs(row.name), theirs(row.label())};
    if (const ToleranceRow* const one = row_to_copy(rows, i))
      cells += ordinary_cells(*one, violated.contains({row.kernel, row.dtype}));
    else
      (cells += none_since(row.bred ? "a campaign breeds its cases to be hard" : "no judged case was ordinary")) +=
          Cells(3, "–");
    cells += {short_number(size_of_code(row.cell.worst_normal)),
              row.cell.worst_subnormal == 0 ? "–" : short_number(size_of_code(row.cell.worst_subnormal))};
    table.rows.push_back({std::move(cells), {row.name + " " + row.label(), row.property}});
  }
  return {std::move(table)};
}

}  // namespace attest
