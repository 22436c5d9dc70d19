// tolerances.toml: the suggested tolerances as a file for a test-suite.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>

#include "core/support/visible.h"
#include "reports/results/tolerance.h"
#include "reports/run_folder/run_folder.h"
#include "reports/run_folder/version.h"
#include "reports/text/text.h"

namespace attest {
namespace {

/// A basic string of TOML. What is not seen is escaped: the string is the same to who reads it.
std::string quoted(const std::string& text) {
  const std::string seen = with_hidden(text, [](char32_t character) {
    const auto code = static_cast<std::uint32_t>(character);
    return code < 0x10000 ? fmt::format("\x01u{:04X}", code) : fmt::format("\x01U{:08X}", code);
  });
  std::string result = "\"";
  for (const char c : seen) {
    if (c == '"' || c == '\\') result += '\\';
    // No character of the text is one any more.
    result += c == '\x01' ? '\\' : c;
  }
  return result + '"';
}

/// A key, bare where TOML lets it be.
std::string key_of(const std::string& text) {
  const auto bare = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  return !text.empty() && std::ranges::all_of(text, bare) ? text : quoted(text);
}

/// A float of TOML, which a whole number without a point is not.
std::string float_of(double number) {
  if (!std::isfinite(number)) return "inf";
  const std::string text = fmt::format("{}", number);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string comment(const std::string& text) {
  return "# " + one_line(text) + '\n';
}

std::string table_of(const std::string& name, const ToleranceRow& row, const ToleranceRow& whole, bool violated,
                     const Summary& summary) {
  const ErrorCell& cell = row.cell;
  std::string text = fmt::format("\n[{}.{}{}]\n", key_of(name), key_of(row.dtype),
                                 row.gradient.empty() ? "" : "." + key_of(row.gradient));
  if (violated) text += comment("VIOLATED: of wrong answers none is suggested. What the right ones needed:");
  text +=
      comment(fmt::format("{} cases, {} elements{}: worst error {}, worst utilisation {}.", cell.cases, cell.elements,
                          row.is_ordinary() ? " of ordinary inputs" : "", short_number(size_of_code(cell.worst_error)),
                          short_number(size_of_code(cell.worst_utilisation))));
  if (whole.cell.cases > cell.cases) {
    text += comment(fmt::format("With every kind of inputs, huge ones too, {} cases: atol = {}, rtol = {}.",
                                whole.cell.cases, float_of(whole.tolerance.atol), float_of(whole.tolerance.rtol)));
  }
  if (const std::string caution = row.caution(); !caution.empty()) {
    text += comment(fmt::format("CAUTION: {}; {} check --kernel {} --dtype {} --property {} --cases 4000 has more.",
                                caution, command_name(), shell_quoted(row.kernel), row.dtype, row.property));
  }
  if (!row.missed.empty())
    text += comment(
        fmt::format("Lets {} of {} planted faults pass; the report names them.", row.missed.size(), row.missed_of));
  if (const std::string again = rerun_line(row, summary, row.rerun_k()); !again.empty())
    text += comment(fmt::format("The case of the {} again: {}",
                                row.rerun_of() == "worst_error" ? "worst error" : "worst utilisation", again));
  // A test-suite that asks for them is to fail.
  return text + fmt::format("{0}atol = {1}\n{0}rtol = {2}\n", violated ? "# " : "", float_of(row.tolerance.atol),
                            float_of(row.tolerance.rtol));
}

}  // namespace

std::vector<ToleranceRow> rows_for_suites(const std::vector<ToleranceRow>& rows) {
  std::vector<ToleranceRow> chosen;
  for (const ToleranceRow& whole : rows) {
    if (!whole.is_whole() || whole.bred) continue;
    const auto ordinary = std::ranges::find_if(rows, [&](const ToleranceRow& row) {
      return row.is_ordinary() && row.keys == "all" && row.kernel == whole.kernel && row.dtype == whole.dtype &&
             row.property == whole.property;
    });
    chosen.push_back(ordinary == rows.end() ? whole : *ordinary);
  }
  return chosen;
}

std::string tolerances_toml(const std::vector<ToleranceRow>& rows, const Summary& summary) {
  std::map<std::pair<std::string, std::string>, int> same_names;
  for (const KernelSummary& kernel : summary.kernels) ++same_names[{kernel.name, kernel.dtype}];
  std::string text = comment("Tolerances for |found - exact| <= atol + rtol |exact|, by kernel and dtype.") +
                     comment(fmt::format("Written by attest {} from a run with seed {}.", version(), summary.seed));
  const std::vector<ToleranceRow> chosen = rows_for_suites(rows);
  // Of none nothing is said that would be true of some.
  if (!rows.empty() && rows.front().bred) {
    text +=
        comment(fmt::format("None here: a campaign breeds its cases to be hard. {} check has some.", command_name()));
  } else if (chosen.empty()) {
    text += comment("None here: no answer was held against the exact one.");
  } else {
    text += comment("They are twice what would have accepted every right answer of the run to ordinary inputs:") +
            comment("scores and values of order 1. Values of another size need atol times their size.");
  }
  for (const KernelSummary& kernel : summary.kernels) {
    const auto of_it = [&](const ToleranceRow& row) { return row.kernel == kernel.id && row.dtype == kernel.dtype; };
    const std::string& name = same_names[{kernel.name, kernel.dtype}] > 1 ? kernel.id : kernel.name;
    std::set<std::string> told;  // of several properties that measure the same the first one: a table has one name
    for (const ToleranceRow& row : chosen) {
      if (!of_it(row) || !told.insert(row.gradient).second) continue;
      const auto whole = std::ranges::find_if(rows, [&](const ToleranceRow& other) {
        return of_it(other) && other.property == row.property && other.is_whole();
      });
      text += table_of(name, row, *whole, kernel.verdict == Outcome::violated, summary);
    }
  }
  return text;
}

}  // namespace attest
