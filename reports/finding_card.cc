#include "finding_card.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "attest/case.h"
#include "attest/errors.h"
#include "attest/json_writer.h"
#include "attest/manifest.h"
#include "attest/oracle.h"
#include "compared.h"
#include "element_text.h"
#include "html_elements.h"
#include "run_folder.h"
#include "text.h"

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
  const auto shrunk = c.metadata.find("shrunk");
  // A handful of numbers is read at a glance; more is unfolded by who wants them.
  return fmt::format(
      "<details{}><summary>{}: {}, scale {}, causal {}, mask {}</summary><div class=\"scroll\"><table "
      "class=\"case\"><thead><tr><th scope=\"col\">tensor</th><th scope=\"col\">shape</th><th "
      "scope=\"col\">decimal</th><th "
      "scope=\"col\">hexadecimal</th></tr></thead><tbody>{}</tbody></table></div></details>",
      numbers <= 24 ? " open" : "", shrunk != c.metadata.end() ? "Shrunk case" : "Case", name_of(c.operation),
      exact_text(c.scale), name_of(c.causal), c.mask().present() ? name_of(c.mask_convention) : "none", rows);
}

std::optional<Case> case_of(const FindingRecord& finding, const std::string& folder) {
  if (folder.empty() || finding.case_file.empty()) return std::nullopt;
  try {
    return load_case(std::filesystem::path(folder) / finding.case_file);
  } catch (const UsageError&) {
    return std::nullopt;
  }
}

/// The judged element, certified; nothing where the case is large or the manifest is not known.
std::optional<ElementFacts> facts_of(const FindingRecord& finding, const Case& c, const Journal& journal) {
  const auto kernel = std::ranges::find(journal.kernels, finding.subject.kernel, &KernelRecord::id);
  if (kernel == journal.kernels.end() || kernel->manifest.empty() || c.operation != Operation::attention)
    return std::nullopt;
  if (multiplications_of(c) > most_computed_again) return std::nullopt;
  try {
    const Manifest manifest = parse_manifest(kernel->manifest, kernel->id);
    const std::vector<ElementFacts> facts = exact_elements(c, manifest.arithmetic_for(c.dtype()));
    const auto element = static_cast<std::size_t>(finding.verdict.element);
    return element < facts.size() ? std::optional(facts[element]) : std::nullopt;
  } catch (const UsageError&) {
    return std::nullopt;
  }
}

std::string fact(std::string_view name, const std::string& text) {
  return fmt::format("<dt>{}</dt><dd>{}</dd>", name, escaped(text));
}

std::string enclosed(const Enclosure& exact) {
  return fmt::format("[{}, {}]", exact_text(exact.lower), exact_text(exact.upper));
}

/// An element by its index: of out where the property holds one answer against the exact one, else of what the law
/// compares.
std::string place_of(const FindingRecord& finding, const std::optional<Case>& c, bool of_out) {
  const std::int64_t element = finding.verdict.element;
  if (of_out && c && element >= 0 && element < c->out_shape().elements())
    return "out" + index_text(element, c->out_shape());
  return fmt::format("element {} of what the property compares", element);
}

}  // namespace

std::string finding_card(const FindingRecord& finding, const FindingContext& context) {
  const Verdict& verdict = finding.verdict;
  const std::optional<Case> c = case_of(finding, context.folder);
  const bool of_out = context.alone && finding.subject.property == "attention.oracle";
  std::string facts = fact("found", verdict.reason);
  const bool not_finite = verdict.violation == Violation::not_finite;
  // What a law compares is numbered by itself; its reason says so.
  if (verdict.outcome == Outcome::violated && verdict.element >= 0 && (of_out || not_finite))
    facts += fact(not_finite ? "first NaN or Inf" : "where", place_of(finding, c, of_out));
  if (verdict.violation == Violation::bound || verdict.violation == Violation::lse) {
    facts += fact("error", exact_text(verdict.error));
    facts += fact("allowed", exact_text(verdict.allowed));
  }
  if (of_out && c && verdict.element >= 0) {
    if (const std::optional<ElementFacts> exact = facts_of(finding, *c, context.journal))
      facts += fact("exact, enclosed", enclosed(exact->exact));
  }
  // Of a law: which of the two sides is wrong.
  for (std::size_t side = 0; side < finding.compared.size(); ++side)
    facts += fact(side == 0 ? "one side" : "other side", side_text(finding.compared[side]));
  return fmt::format(
      "<div class=\"finding\"><p><b>Case {}</b>, {}, utilisation {}</p><dl>{}</dl>{}<pre class=\"line\">{}</pre></div>",
      finding.k, escaped(std::string(finding.kind())), short_number(verdict.utilisation), facts, c ? case_html(*c) : "",
      escaped(replay_line(context.folder, finding.case_file)));
}

}  // namespace attest
