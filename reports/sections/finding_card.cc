#include "reports/sections/finding_card.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "core/problem/case.h"
#include "core/support/errors.h"
#include "core/support/folder.h"
#include "core/support/json_writer.h"
#include "reports/page/element_text.h"
#include "reports/page/html_elements.h"
#include "reports/run/run_folder.h"
#include "reports/run/text.h"

namespace attest {
namespace {

/// Numbers of a tensor that are printed; the rest is counted.
constexpr std::int64_t numbers_shown = 48;

std::string decimal_text(double value, DType dtype) {
  if (std::isfinite(value) && dtype == DType::f32) return fmt::format("{}", static_cast<float>(value));
  return number_text(value);
}

std::string tensor_row(Slot slot, const Tensor& tensor) {
  const std::int64_t shown = std::min(tensor.elements(), numbers_shown);
  std::string decimal, hex;
  for (std::int64_t i = 0; i < shown; ++i) {
    const char* const separator = i == 0 ? "" : ", ";
    decimal += separator + decimal_text(tensor[i], tensor.dtype());
    hex += separator + hex_number(tensor[i]);
  }
  if (shown < tensor.elements())
    decimal += fmt::format(", … and {} more of {}", tensor.elements() - shown, tensor.elements());
  return fmt::format("<tr><th scope=\"row\">{}</th><td>{} {}</td><td><code>{}</code></td><td><code>{}</code></td></tr>",
                     name_of(slot), name_of(tensor.dtype()), tensor.shape().to_string(), decimal,
                     tensor.dtype() == DType::boolean ? "" : hex);
}

std::string case_html(const Case& c) {
  std::int64_t numbers = 0;
  std::string rows;
  for (int index = 0; index < slot_count; ++index) {
    const auto slot = static_cast<Slot>(index);
    if (!c[slot].present()) continue;
    numbers += c[slot].elements();
    rows += tensor_row(slot, c[slot]);
  }
  // A handful of numbers is read at a glance; more is unfolded by who wants them.
  return fmt::format(
      "<details{}><summary>{}: {}, scale {}, causal {}, mask {}</summary><div class=\"scroll\"><table "
      "class=\"case\"><thead><tr><th scope=\"col\">tensor</th><th scope=\"col\">shape</th><th "
      "scope=\"col\">decimal</th><th "
      "scope=\"col\">hexadecimal</th></tr></thead><tbody>{}</tbody></table></div></details>",
      numbers <= 24 ? " open" : "", c.provenance.shrunk ? "Shrunk case" : "Case", name_of(c.operation),
      exact_text(c.scale), name_of(c.causal), c.mask().present() ? name_of(c.mask_convention) : "none", rows);
}

std::optional<Case> case_of(const FindingRecord& finding, const std::string& folder) {
  if (folder.empty() || finding.case_file.empty()) return std::nullopt;
  try {
    const std::filesystem::path path = folder;
    return decode_case(Folder(path).read(finding.case_file), (path / finding.case_file).native());
  } catch (const ForeignEntry&) {
    throw;
  } catch (const UsageError&) {
    return std::nullopt;
  }
}

std::string fact(std::string_view name, const std::string& text) {
  return fmt::format("<dt>{}</dt><dd>{}</dd>", name, escaped(text));
}

/// What the element's line is headed by: of two sides of a law, which one is wrong is then seen.
std::string_view heading_of(const std::vector<ComparedRecord>& compared, std::size_t index) {
  if (!std::isfinite(compared[index].found)) return "first NaN or Inf";
  if (compared.size() == 1) return "where";
  return index == 0 ? "one side" : "other side";
}

}  // namespace

std::string finding_card(const FindingRecord& finding, const std::string& folder) {
  const Verdict& verdict = finding.verdict;
  const std::optional<Case> c = case_of(finding, folder);
  std::string facts = fact("found", verdict.reason);
  for (std::size_t i = 0; i < finding.compared.size(); ++i)
    facts += fact(heading_of(finding.compared, i), element_text(finding.compared[i]));
  if (verdict.violation == Violation::bound || verdict.violation == Violation::lse) {
    facts += fact("error", exact_text(verdict.error));
    facts += fact("allowed", exact_text(verdict.allowed));
  }
  // Not that of the case as it was drawn, of which the tables tell.
  const bool shrunk = c && c->provenance.shrunk.has_value();
  return fmt::format(
      "<div class=\"finding\"><p><b>Case {}</b>, {}, utilisation {}{}</p><dl>{}</dl>{}<pre "
      "class=\"line\">{}</pre></div>",
      finding.k, escaped(std::string(finding.kind())), short_number(verdict.utilisation), shrunk ? " once shrunk" : "",
      facts, c ? case_html(*c) : "", escaped(replay_line(folder, finding.case_file)));
}

}  // namespace attest
