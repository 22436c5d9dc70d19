#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <set>
#include <vector>

#include "reports/page/html_elements.h"
#include "reports/results/tolerance.h"
#include "reports/run/text.h"

namespace attest {
namespace {

std::string signed_number(double value) {
  return fmt::format("{}{:.2g}", value < 0 ? "−" : "", std::abs(value));
}

/// The cells of both tables from the worst error to the condition.
std::string errors_of(const ErrorCell& cell) {
  std::string html;
  for (const double size : {size_of_code(cell.worst_error), size_of_code(cell.worst_ulp),
                            size_of_code(cell.worst_utilisation), cell.quantile(0.999), cell.root_mean_square()})
    html += number_cell(short_number(size));
  return html + number_cell(signed_number(cell.mean())) + number_cell(short_number(size_of_code(cell.condition)));
}

/// The columns of a table that has those of errors_of in its middle.
std::vector<Column> around_errors(std::vector<Column> columns, std::initializer_list<Column> after,
                                  std::string_view group = {}) {
  for (const char* name : {"worst error", "worst ulp", "worst", "p99.9", "rms", "bias", "condition"})
    columns.push_back({name, true, group});
  columns.insert(columns.end(), after);
  return columns;
}

std::string tolerance_of(const ToleranceRow& row) {
  if (row.bred) {
    const std::string none = number_cell("<abbr title=\"a campaign breeds its cases to be hard\">–</abbr>");
    return none + none;
  }
  return number_cell(short_number(row.tolerance.atol)) + number_cell(short_number(row.tolerance.rtol));
}

std::string worst_case_of(const ToleranceRow& row, const Summary& summary) {
  const std::string line = rerun_line(row, summary, row.cell.worst_k), label = fmt::format("case {}", row.cell.worst_k);
  return fmt::format("<td>{}</td>", line.empty() ? label : folded_line(label, line));
}

/// The planted faults that the tolerance lets pass.
std::string missed_cell(const ToleranceRow& row) {
  if (row.missed_of == 0) return "<td>–</td>";
  const std::string count = fmt::format("{} of {}", row.missed.size(), row.missed_of);
  if (row.missed.empty()) return fmt::format("<td>{}</td>", count);
  return fmt::format("<td>{}</td>", folded_line(count, fmt::format("{}", fmt::join(row.missed, ", "))));
}

bool is_whole(const ToleranceRow& row) {
  return row.keys == "all" && row.mask == "all" && row.values == "all";
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
    if (is_whole(rows[i])) whole.emplace_back(infinite_code - rows[i].cell.worst_utilisation, i);
  std::ranges::sort(whole);
  std::set<std::size_t> shown;
  for (std::size_t i = 0; i < std::min(most, whole.size()); ++i) shown.insert(whole[i].second);
  return shown;
}

/// The tolerance to copy, with what speaks against copying it.
std::string suite_tolerance(const ToleranceRow& row) {
  const std::string caution = row.caution();
  if (caution.empty()) return tolerance_of(row);
  const auto cell = [&](double number) {
    return fmt::format("<td class=\"number\"><abbr title=\"{0}\">{1} ?</abbr></td>", escaped(caution),
                       short_number(number));
  };
  return cell(row.tolerance.atol) + cell(row.tolerance.rtol);
}

constexpr std::string_view all_cases = "all cases", ordinary_cases = "ordinary cases, to copy";

std::string ordinary_cells(const ToleranceRow& row, bool violated) {
  const std::string measured =
      number_cell(row.cell.cases) + number_cell(short_number(size_of_code(row.cell.worst_error)));
  if (!violated) return measured + suite_tolerance(row) + missed_cell(row);
  // They would be what its mistakes leave.
  const std::string none = number_cell("<abbr title=\"of a kernel that is violated none is suggested\">–</abbr>");
  return measured + none + none + "<td>–</td>";
}
constexpr const char* ordinary_cells_of_none =
    "<td class=\"number\">–</td><td class=\"number\">–</td><td class=\"number\">–</td><td "
    "class=\"number\">–</td><td>–</td>";

/// A table by class for each kernel and dtype, folded.
std::string classes_html(const std::vector<ToleranceRow>& rows, const Summary& summary) {
  const std::set<std::size_t> shown = shown_of(rows);
  std::string html;
  std::size_t left_out = 0;
  for (std::size_t i = 0; i < rows.size();) {
    const ToleranceRow& whole = rows[i];
    const bool show = shown.contains(i);
    left_out += show ? 0 : 1;
    std::string body;
    for (++i; i < rows.size() && !is_whole(rows[i]); ++i) {
      // Combinations of all three are in the files; a page of hundreds of rows is read by nobody.
      const ToleranceRow& row = rows[i];
      if (!show || (classes_of(row) > 1 && !row.is_ordinary())) continue;
      const auto [what, which] = row.is_ordinary()   ? std::pair("ordinary", row.keys)
                                 : row.keys != "all" ? std::pair("keys", row.keys)
                                 : row.mask != "all" ? std::pair("mask", row.mask)
                                                     : std::pair("values", row.values);
      body += fmt::format("<tr><td>{}</td><th scope=\"row\">{}</th>", what, escaped(which)) +
              number_cell(row.cell.cases) + number_cell(row.cell.elements) + errors_of(row.cell) + tolerance_of(row) +
              worst_case_of(row, summary) + "</tr>";
    }
    if (!show) continue;
    html += fmt::format("<details{}><summary>{} <span class=\"dtype\">{}</span> by class</summary>{}</details>",
                        tags(words_of(whole), "", ""), escaped(whole.name), escaped(whole.dtype),
                        table_html(fmt::format("{} in {} by class of case", whole.name, whole.dtype),
                                   around_errors({{"by"}, {"class"}, {"cases", true}, {"elements", true}},
                                                 {{"atol", true}, {"rtol", true}, {"worst case"}}),
                                   body, "dense"));
  }
  if (left_out > 0) {
    html += fmt::format(
        "<p class=\"note\">By class only where the worst utilisation is largest; {} more kernels × dtypes "
        "are in the files.</p>",
        left_out);
  }
  return "<details><summary>By class of case: number of keys, effect of the mask, kind of values</summary>" + html +
         "</details>";
}

constexpr const char* reading =
    "<details><summary>How to read it</summary><p>Errors of single elements against the exact answer, of every judged "
    "case whose error was measured. <b>Worst error</b> is absolute, <b>worst ulp</b> in units of the last place of the "
    "exact value in the output's format (large where an answer nearly cancels). <b>Worst</b>, <b>p99.9</b>, <b>rms</b> "
    "and <b>bias</b> are shares of the bound that is proved for the element: the largest, a quantile from above, the "
    "root of the mean square, and the mean with its sign (positive: answers too large; shares beyond 4 count as 4). "
    "<b>Worst case</b> is that of the worst share; the worst error may be of another. "
    "<b>Condition</b> is Σα|v| over |Σαv| at the worst element. Sizes are rounded up, by at most one part in 64.</p>"
    "<p><b>atol</b> and <b>rtol</b> are for |found − exact| ≤ atol + rtol·|exact|. By class they would have accepted "
    "every answer that lies within its bound; of ordinary inputs, whose scores and values are of order 1 as in most "
    "test-suites, they are twice that, since other inputs have other errors, and a question mark stands where there "
    "were too few such cases. Of six relative tolerances, 0 and 2, 8, 32, 128, 512 times the unit roundoff of the "
    "output, the least "
    "absolute one is known; suggested is the smallest relative tolerance of which four times as much would not halve "
    "the absolute one, both rounded up to two digits. They are no bound. <b>Lets pass</b> "
    "counts the planted faults that the two miss on half of the ordinary cases that show them, or on more.</p>"
    "</details>";

}  // namespace

std::string tolerances_html(const std::vector<ToleranceRow>& rows, const Summary& summary) {
  if (rows.empty()) return {};
  std::set<std::pair<std::string, std::string>> violated;
  for (const KernelSummary& kernel : summary.kernels)
    if (kernel.verdict == Outcome::violated) violated.emplace(kernel.id, kernel.dtype);
  std::string whole_rows;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const ToleranceRow& row = rows[i];
    if (!is_whole(row)) continue;
    // The ordinary cases of a kernel in a dtype stand behind all of them.
    const bool has_ordinary = i + 1 < rows.size() && rows[i + 1].is_ordinary() && rows[i + 1].keys == "all";
    whole_rows += fmt::format("<tr{}><th scope=\"row\">{}</th><td>{}{}</td>", tags(words_of(row), row.property, ""),
                              escaped(row.name), escaped(row.dtype),
                              row.accumulate.empty() ? "" : " (" + escaped(row.accumulate) + ")") +
                  number_cell(row.cell.cases) + errors_of(row.cell) + worst_case_of(row, summary) +
                  (has_ordinary ? ordinary_cells(rows[i + 1], violated.contains({row.kernel, row.dtype}))
                                : ordinary_cells_of_none) +
                  "</tr>";
  }
  return table_html(
             "Errors of a kernel in a dtype against the proved bound, of all cases, those made to hurt among them; and "
             "the "
             "tolerances to copy, twice what ordinary inputs needed, with the planted faults that they let pass",
             around_errors({{"kernel"}, {"dtype (sums)"}, {"cases", true, all_cases}},
                           {{"worst case", false, all_cases},
                            {"cases", true, ordinary_cases},
                            {"worst error", true, ordinary_cases},
                            {"atol", true, ordinary_cases},
                            {"rtol", true, ordinary_cases},
                            {"lets pass", false, ordinary_cases}},
                           all_cases),
             whole_rows, "dense") +
         reading + classes_html(rows, summary) +
         "<p class=\"note\">Every combination of the three: <code>attest report RUN --json -o tolerances.json</code>, "
         "or <code>--csv</code>.</p>";
}

}  // namespace attest
