#include <fmt/format.h>

#include <algorithm>
#include <cmath>
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

/// As everywhere on the page, no absolute errors: of all inputs they are as large as the inputs.
Cells errors_of(const ErrorCell& cell) {
  const auto share = [](LogCode code) { return TableCell(code == 0 ? "–" : short_number(size_of_code(code))); };
  return {short_number(size_of_code(cell.worst_normal)),
          share(cell.worst_subnormal),
          short_number(cell.quantile(0.999)),
          short_number(cell.root_mean_square()),
          signed_number(cell.mean()),
          short_number(size_of_code(cell.worst_scaled)),
          short_number(size_of_code(cell.condition))};
}

constexpr std::string_view error_columns = "#worst share|#subnormal rounding|#p99.9|#rms|#bias|#in u Σα¦v¦|#condition";

Piece worst_case_of(const ToleranceRow& row, const Summary& summary) {
  const std::string line = rerun_line(row, summary, row.cell.worst_k), label = fmt::format("case {}", row.cell.worst_k);
  return line.empty() ? Piece(label) : folded_line(label, line);
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
    Table table{
        fmt::format("{} in {} by class of case", whole.name, whole.dtype),
        columns_of(fmt::format("by|class of case|#cases measured|#elements measured|{}|worst case", error_columns)),
        "dense",
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
      (cells += errors_of(row.cell)) += {worst_case_of(row, summary)};
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

}  // namespace

Blocks errors_page(const Reported& run) {
  const Summary& summary = run.summary;
  const std::vector<ToleranceRow> rows = tolerance_rows(summary, run.journal);
  if (rows.empty()) return {};
  Table table{
      "Errors of single elements against the exact answer, as shares of what is allowed, of all cases, those "
      "made to hurt among them",
      columns_of(fmt::format("kernel|dtype (sums)|#cases measured|{}|worst case", error_columns)), "dense"};
  for (const ToleranceRow& row : rows) {
    if (!row.is_whole()) continue;
    const std::string sums = row.accumulate.empty() ? "" : " (" + row.accumulate + ")";
    Cells cells{theirs(row.name), theirs(row.label() + sums), row.cell.cases};
    (cells += errors_of(row.cell)) += {worst_case_of(row, summary)};
    table.rows.push_back({std::move(cells), {words_of(row), row.property}});
  }
  return {std::move(table), by_class(rows, summary),
          Paragraph{{"Absolute errors, units in the last place, and every combination of the classes: ",
                     code("attest report RUN --json -o tolerances.json"), ", or ", code("--csv"),
                     ". Sizes are rounded up, by at most one part in 64."},
                    "note"}};
}

}  // namespace attest
