#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "core/problem/case.h"
#include "core/support/errors.h"
#include "core/support/folder.h"
#include "core/support/json_writer.h"
#include "properties/catalogue/property.h"
#include "reports/page/element_text.h"
#include "reports/run_folder/run_folder.h"
#include "reports/sections/sections.h"
#include "reports/text/text.h"

namespace attest {
namespace {

/// Numbers of a tensor that are printed; the rest is counted.
constexpr std::int64_t numbers_shown = 48;

std::string decimal_text(double value, DType dtype) {
  if (std::isfinite(value) && dtype == DType::f32) return fmt::format("{}", static_cast<float>(value));
  return number_text(value);
}

TableRow tensor_row(Slot slot, const Tensor& tensor) {
  const std::int64_t shown = std::min(tensor.elements(), numbers_shown);
  std::string decimal, hex;
  for (std::int64_t i = 0; i < shown; ++i) {
    const char* const separator = i == 0 ? "" : ", ";
    decimal += separator + decimal_text(tensor[i], tensor.dtype());
    hex += separator + hex_number(tensor[i]);
  }
  if (shown < tensor.elements())
    decimal += fmt::format(", … and {} more of {}", tensor.elements() - shown, tensor.elements());
  return {{name_of(slot), fmt::format("{} {}", name_of(tensor.dtype()), tensor.shape().to_string()), code(decimal),
           code(is_floating(tensor.dtype()) ? hex : "")}};
}

/// The case, unfolded where its numbers are a handful, which is read at a glance.
Group case_block(const Case& c) {
  std::int64_t numbers = 0;
  Table table{"", columns_of("tensor|shape|decimal|hexadecimal"), "case", /*sorts=*/false};
  for (int index = 0; index < slot_count; ++index) {
    const auto slot = static_cast<Slot>(index);
    if (!c[slot].present()) continue;
    numbers += c[slot].elements();
    table.rows.push_back(tensor_row(slot, c[slot]));
  }
  return {.kind = Group::Kind::folded,
          .title = fmt::format("{}: {}, scale {}, causal {}, mask {}", c.provenance.shrunk ? "Shrunk case" : "Case",
                               name_of(c.operation), exact_text(c.scale), name_of(c.causal),
                               c.mask().present() ? name_of(c.mask_convention) : "none"),
          .blocks = {std::move(table)},
          .open = numbers <= 24};
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

/// What the element's line is headed by: of two sides of a law, which one is wrong is then seen.
std::string heading_of(const std::vector<ComparedRecord>& compared, std::size_t index) {
  if (!std::isfinite(compared[index].found)) return "first NaN or Inf";
  if (compared.size() == 1) return "where";
  return index == 0 ? "one side" : "other side";
}

/// The finding with its replay line: class, what was found and allowed, where, with the exact value as a certified
/// enclosure, and the numbers of the shrunk case, decimal and hexadecimal, where its file is in the run's folder and
/// can be read.
Group finding_card(const FindingRecord& finding, const std::string& folder) {
  const Verdict& verdict = finding.verdict;
  const std::optional<Case> c = case_of(finding, folder);
  // Not that of the case as it was drawn, of which the tables tell.
  const bool shrunk = c && c->provenance.shrunk.has_value();
  Facts facts{{{"found", {theirs(verdict.reason)}}}};
  for (std::size_t i = 0; i < finding.compared.size(); ++i)
    facts.facts.push_back({heading_of(finding.compared, i), {element_text(finding.compared[i])}});
  if (verdict.violation == Violation::bound || verdict.violation == Violation::lse) {
    facts.facts.push_back({"error", {exact_text(verdict.error)}});
    facts.facts.push_back({"allowed", {exact_text(verdict.allowed)}});
  }
  Group card{.blocks = {Paragraph{{strong(fmt::format("Case {}", finding.k)), ", ", finding.kind(),
                                   fmt::format(", utilisation {}{}", short_number(verdict.utilisation),
                                               shrunk ? " once shrunk" : "")}},
                        std::move(facts)}};
  if (c) card.blocks.emplace_back(case_block(*c));
  card.blocks.emplace_back(CodeLines{{replay_line(folder, finding.case_file)}});
  return card;
}

/// Findings that are shown as cards; of the rest there is a line each, and of those behind them a count.
constexpr std::size_t most_cards = 60, most_lines = 600;

std::string statement_of(const std::string& name) {
  const auto property = std::ranges::find(catalogue(), name, &Property::name);
  return property == catalogue().end() ? std::string() : std::string((*property)->statement);
}

std::string_view verb_of(const PropertySummary& property) {
  return property.verdict == Outcome::violated ? "violates" : "is undecided for";
}

/// "2 of 5 cases": what is violated or undecided.
std::string count_text(const PropertySummary& property) {
  const Tally& tally = property.tally;
  return fmt::format("{} of {} cases", property.verdict == Outcome::violated ? tally.violated : tally.inconclusive,
                     tally.cases());
}

/// Of what no case was reached, there is nothing to show.
bool is_shown(const PropertySummary& property) {
  return property.verdict == Outcome::violated || !property.findings.empty();
}

Group article_of(const KernelSummary& kernel, const PropertySummary& property, const std::string& folder) {
  Group article{.kind = Group::Kind::article,
                .title = {title_of(kernel.name, kernel.dtype), " ", verb_of(property), " ", theirs(property.name)},
                .blocks = {},
                .tags = tags_of(kernel, property),
                .id = anchor_of(kernel, property)};
  if (const std::string statement = statement_of(property.name); !statement.empty())
    article.blocks.emplace_back(Paragraph{statement, "note"});
  article.blocks.emplace_back(Paragraph{fmt::format(
      "{}{}.", count_text(property),
      property.tally.worst_k < 0 ? ""
                                 : fmt::format("; worst utilisation of the cases as drawn {}, of the saved ones below",
                                               short_number(property.tally.worst_utilisation)))});
  for (const FindingRecord& finding : property.findings) article.blocks.emplace_back(finding_card(finding, folder));
  return article;
}

/// A line of "Further findings".
TableRow line_of(const KernelSummary& kernel, const PropertySummary& property, std::size_t i,
                 const std::string& folder) {
  const FindingRecord& finding = property.findings[i];
  return {{theirs(kernel.name), theirs(kernel.dtype), theirs(property.name), finding.kind(),
           short_number(finding.verdict.utilisation),
           folded_line(fmt::format("case {}", finding.k), replay_line(folder, finding.case_file))},
          tags_of(kernel, property),
          i == 0 ? anchor_of(kernel, property) : ""};
}

/// What stands in summary.md of a property.
Group entry_of(const KernelSummary& kernel, const PropertySummary& property, const std::string& folder) {
  Group entry{
      .blocks = {Paragraph{{sign(property.verdict), " ", name_in(kernel), " ", verb_of(property), " ",
                            theirs(property.name), ", ", count_text(property), ": ", theirs(property.reason)}}}};
  CodeLines lines;
  for (const FindingRecord& finding : property.findings) lines.lines.push_back(replay_line(folder, finding.case_file));
  if (!lines.lines.empty()) entry.blocks.emplace_back(std::move(lines));
  return entry;
}

}  // namespace

Blocks findings_page(const Reported& run) {
  const Summary& summary = run.summary;
  const std::string& folder = run.folder;
  Blocks explanations, articles;
  Table lines{"Further findings", columns_of("kernel|dtype|property|kind of violation|#utilisation, as saved|replay")};
  std::size_t cards = 0, left_out = 0;
  for (const KernelSummary& kernel : summary.kernels) {
    for (const PropertySummary& property : kernel.properties) {
      if (!is_shown(property)) continue;
      if (cards < most_cards) {
        articles.emplace_back(article_of(kernel, property, folder));
        cards += property.findings.size();
        continue;
      }
      for (std::size_t i = 0; i < property.findings.size(); ++i) {
        if (lines.rows.size() < most_lines)
          lines.rows.push_back(line_of(kernel, property, i, folder));
        else
          ++left_out;
      }
    }
    for (const KernelExplanation& one : kernel.explanations) {
      explanations.emplace_back(
          Paragraph{{strong(kernel.name), " ", Piece(kernel.dtype, Piece::Kind::dtype), ": ", theirs(one.text), "."},
                    "explanation",
                    "",
                    tags_of(kernel)});
    }
  }
  Blocks blocks = std::move(explanations);
  blocks.insert(blocks.end(), articles.begin(), articles.end());
  if (!lines.rows.empty()) blocks.emplace_back(std::move(lines));
  if (left_out > 0)
    blocks.emplace_back(Paragraph{fmt::format("{} further findings are in summary.json and run.jsonl.", left_out)});
  return blocks.empty() ? Blocks{Paragraph{"None."}} : blocks;
}

Brief findings_brief(const Reported& run) {
  const Summary& summary = run.summary;
  const std::string& folder = run.folder;
  Brief brief{"Findings", "findings", {}, {}};
  const auto add = [&](Outcome outcome) {
    for (const KernelSummary& kernel : summary.kernels)
      for (const PropertySummary& property : kernel.properties)
        if (property.verdict == outcome && is_shown(property))
          brief.entries.emplace_back(entry_of(kernel, property, folder));
  };
  add(Outcome::violated);
  for (const KernelSummary& kernel : summary.kernels) {
    for (const KernelExplanation& one : kernel.explanations)
      brief.entries.emplace_back(
          Group{.blocks = {Paragraph{{"Explained, ", name_in(kernel), ": ", theirs(one.text)}}}});
  }
  add(Outcome::inconclusive);
  return brief;
}

}  // namespace attest
