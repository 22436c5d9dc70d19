#include <fmt/format.h>

#include <cmath>

#include "html_elements.h"
#include "text.h"
#include "tolerance.h"

namespace attest {
namespace {

constexpr const char* number_headings[] = {"cases", "elements", "worst error", "worst ulp", "worst", "p99.9",
                                           "rms",   "bias",     "condition",   "atol",      "rtol"};

std::string heading(std::initializer_list<const char*> words) {
  std::string html = "<thead><tr>";
  for (const char* word : words) html += fmt::format("<th scope=\"col\">{}</th>", word);
  for (const char* word : number_headings) html += fmt::format("<th scope=\"col\" class=\"number\">{}</th>", word);
  return html + "<th scope=\"col\">worst case</th></tr></thead>";
}

std::string signed_number(double value) {
  return value < 0 ? "−" + short_number(-value) : short_number(value);
}

std::string figures(const ToleranceRow& row, const Summary& summary) {
  const ErrorCell& cell = row.cell;
  std::string html;
  for (const std::string& text :
       {std::to_string(cell.cases), std::to_string(cell.elements), short_number(size_of_code(cell.worst_error)),
        short_number(size_of_code(cell.worst_ulp)), short_number(size_of_code(cell.worst_utilisation)),
        short_number(cell.quantile(0.999)), short_number(cell.root_mean_square()), signed_number(cell.mean()),
        short_number(size_of_code(cell.condition)), short_number(row.tolerance.atol), short_number(row.tolerance.rtol)})
    html += fmt::format("<td class=\"number\">{}</td>", text);
  const std::string line = rerun_line(row, summary);
  return html + (line.empty() ? fmt::format("<td>case {}</td>", cell.worst_k)
                              : fmt::format("<td><details><summary>case {}</summary><code>{}</code></details></td>",
                                            cell.worst_k, escaped(line)));
}

bool is_whole(const ToleranceRow& row) {
  return row.keys == "all" && row.mask == "all" && row.values == "all";
}

/// How many of the three are not "all".
int classes_of(const ToleranceRow& row) {
  return (row.keys != "all" ? 1 : 0) + (row.mask != "all" ? 1 : 0) + (row.values != "all" ? 1 : 0);
}

}  // namespace

std::string tolerances_html(const std::vector<ToleranceRow>& rows, const Summary& summary) {
  if (rows.empty()) return {};
  std::string html =
      "<p>Errors of single elements against the exact answer, of every judged case whose error was measured. <b>Worst "
      "error</b> is absolute, <b>worst ulp</b> in units of the last place of the exact value in the output's format "
      "(large where an answer nearly cancels). <b>Worst</b>, <b>p99.9</b>, <b>rms</b> and <b>bias</b> are shares of "
      "the bound that is proved for the element: the largest, a quantile from above, the root of the mean square, and "
      "the mean with its sign (positive: answers too large; shares beyond 4 count as 4). <b>Condition</b> is Σα|v| "
      "over "
      "|Σαv| at the worst element. Sizes are rounded up, by at most one part in 64.</p>"
      "<p><b>atol</b> and <b>rtol</b> would have accepted every answer here that lies within its bound, as |found − "
      "exact| ≤ atol + rtol·|exact|. Of six relative tolerances, 0 and 2, 8, 32, 128, 512 times the unit roundoff of "
      "the output, the least absolute one is known; suggested is the smallest relative tolerance of which four times "
      "as "
      "much would not halve the absolute one, both rounded up to two digits. They are what these inputs need, not a "
      "bound: a suite should take those of the values that its own inputs are like.</p>";
  html += "<div class=\"scroll\"><table><caption>All cases of a kernel in a dtype; every bound is proved</caption>" +
          heading({"kernel", "dtype", "sums in"}) + "<tbody>";
  for (const ToleranceRow& row : rows) {
    if (!is_whole(row)) continue;
    html += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td>", escaped(row.name), escaped(row.dtype),
                        row.accumulate.empty() ? "–" : escaped(row.accumulate)) +
            figures(row, summary) + "</tr>";
  }
  html += "</tbody></table></div>";
  for (std::size_t i = 0; i < rows.size();) {
    const ToleranceRow& whole = rows[i];
    html += fmt::format(
                "<details><summary>{} <span class=\"dtype\">{}</span> by class</summary><div "
                "class=\"scroll\"><table>",
                escaped(whole.name), escaped(whole.dtype)) +
            heading({"keys", "mask", "values"}) + "<tbody>";
    for (++i; i < rows.size() && !is_whole(rows[i]); ++i) {
      // Combinations of all three are in the files; a page of hundreds of rows is read by nobody.
      if (classes_of(rows[i]) > 1) continue;
      html += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td>", escaped(rows[i].keys),
                          escaped(rows[i].mask), escaped(rows[i].values)) +
              figures(rows[i], summary) + "</tr>";
    }
    html += "</tbody></table></div></details>";
  }
  return html +
         "<p class=\"note\">Every combination of the three: <code>attest report RUN --json -o tolerances.json</code>, "
         "or "
         "<code>--csv</code>.</p>";
}

}  // namespace attest
