#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/bound/machine_checked.h"
#include "core/kernel/kernel_under_test.h"
#include "core/kernel/manifest.h"
#include "properties/road/offered.h"
#include "reports/page/print.h"
#include "reports/results/summary_words.h"
#include "reports/sections/sections.h"
#include "reports/text/text.h"

namespace attest {
namespace {

std::string quantile_text(const Tally& tally, double fraction) {
  if (tally.judged() == 0) return "–";
  const double bound = tally.quantile(fraction);
  return bound == 0.0 ? "0" : fmt::format("≤ {}", short_number(bound));
}

std::string or_dash(const std::string& text) {
  return text.empty() ? "–" : text;
}

/// Utilisation of the judged cases of a kernel in a dtype, 64 quarter-octave bins, with the line at 1.
std::string histogram(const Tally& tally, const std::string& title) {
  constexpr int bar = 8, height = 90, limit_bin = 56;
  const std::int64_t most = *std::ranges::max_element(tally.histogram);
  if (most == 0) return {};
  const int width = bar * static_cast<int>(tally.histogram.size());
  std::string svg = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\"><title>{}</title>", width,
                                height + 22, escaped(title), escaped(title));
  for (std::size_t i = 0; i < tally.histogram.size(); ++i) {
    const std::int64_t count = tally.histogram[i];
    if (count == 0) continue;
    // Square root: a single case beside thousands must still be seen.
    const double tall = std::max(2.0, height * std::sqrt(static_cast<double>(count) / static_cast<double>(most)));
    const double edge = std::exp2((static_cast<double>(i) - limit_bin) / 4);
    svg += fmt::format(
        "<rect class=\"{}\" x=\"{}\" y=\"{:.1f}\" width=\"{}\" height=\"{:.1f}\"><title>{}{}: {} cases</title></rect>",
        i >= limit_bin ? "over" : "bar", bar * static_cast<int>(i), height - tall, bar - 1, tall,
        i == 0 ? "up to " : "from ", i == 0 ? "8e-05" : short_number(edge), count);
  }
  svg += fmt::format("<line class=\"limit\" x1=\"{0}\" x2=\"{0}\" y1=\"0\" y2=\"{1}\"/>", limit_bin * bar, height);
  svg += fmt::format("<line class=\"axis\" x1=\"0\" x2=\"{}\" y1=\"{}\" y2=\"{}\"/>", width, height, height);
  for (const auto& [bin, label] :
       {std::pair{0, "0"}, std::pair{16, "0.001"}, std::pair{29, "0.01"}, std::pair{43, "0.1"}, std::pair{56, "1"}}) {
    svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>", bin * bar, height + 16,
                       bin == 0 ? "start" : "middle", label);
  }
  return svg + "</svg>";
}

/// Of the cases that the manifest offers.
Listing reasons_list(const Tally& tally) {
  std::map<Reason, std::int64_t> offered;
  for (const auto& [reason, cases] : tally.reasons)
    if (was_offered(reason)) offered.emplace(reason, cases);
  const auto sorted = commonest(offered);
  constexpr std::size_t shown = 12;
  Listing list;
  for (std::size_t i = 0; i < std::min(sorted.size(), shown); ++i)
    list.items.push_back({fmt::format("{} × ", sorted[i].second), theirs(sorted[i].first)});
  if (sorted.size() > shown) list.items.emplace_back(fmt::format("and {} further reasons", sorted.size() - shown));
  return list;
}

/// What the kernel answered to laws about bits that it does not claim.
Table unclaimed_bits(const KernelSummary& kernel) {
  Table table{"Laws about bits that the kernel does not claim: reported, never judged", {}, "bits", /*sorts=*/false};
  for (const PropertySummary& property : kernel.properties) {
    if (property.tally.bits_compared > 0)
      table.rows.push_back({{theirs(property.name), bits_text(property.tally) + ", not claimed"}});
  }
  return table;
}

/// How the tolerance of the kernel's arithmetic is proved; empty where its manifest is not known, or not read, and of
/// the core on a wider scalar, which has another one (error-bounds.md, 1.8).
std::string proof_of(const Reported& run, const KernelSummary& kernel) {
  const std::string scalar = kernel.id.substr(0, kernel.id.find('@'));
  for (const KernelEntry& entry : core_kernels())
    if (entry.id == scalar && entry.digits > 0) return {};
  const auto record = std::ranges::find(run.journal.kernels, kernel.id, &KernelRecord::id);
  if (record == run.journal.kernels.end() || record->manifest.empty()) return {};
  const auto dtype = named<DType>(kernel.dtype);
  try {
    const Manifest manifest = parse_manifest(record->manifest, kernel.id);
    const auto usual = manifest.arithmetic.usual.find(dtype.value_or(DType::boolean));
    return usual == manifest.arithmetic.usual.end() ? std::string() : proof_text(usual->second);
  } catch (const UsageError&) {
    return {};
  }
}

/// `open`: without being asked.
Group kernel_group(const Reported& run, const KernelSummary& kernel, bool open) {
  // Properties that compare bits have no utilisation: beside the others their zeros would be a wall.
  Tally all, measured;
  for (const PropertySummary& property : kernel.properties) {
    all.merge(property.tally);
    if (property.tally.worst_utilisation > 0.0) measured.merge(property.tally);
  }
  Blocks blocks{Paragraph{
      {applies_text(applies_in(kernel)), "; why no others: ", leading("not-covered", "what was not covered"), "."},
      "note"}};
  if (kernel.name != kernel.id) blocks.emplace_back(Paragraph{code(kernel.id), "note"});
  if (const std::string reach = reach_text(kernel); !reach.empty())
    blocks.emplace_back(Paragraph{fmt::format("Reach: {} ({}).", reach, reach_explained), "note"});
  if (const std::string proof = proof_of(run, kernel); !proof.empty())
    blocks.emplace_back(Paragraph{fmt::format("The tolerance of its arithmetic is {}.", proof), "note"});
  Table table{
      fmt::format("Properties of {} in {}", kernel.name, kernel.dtype),
      columns_of(
          "property|verdict|#held|#violated|#excused|#inconclusive|#worst of cases|#p99 of cases|#p50 of cases|reach"),
      "plain"};
  for (const PropertySummary& property : kernel.properties) {
    const Tally& tally = property.tally;
    if (!applies(property)) continue;
    table.rows.push_back(
        {{theirs(property.name), badge(property.verdict), tally.held, tally.violated, tally.excused, tally.inconclusive,
          worst_text(tally), quantile_text(tally, 0.99), quantile_text(tally, 0.5), or_dash(reach_text(tally))},
         {"", property.name, std::string(name_of(property.verdict))}});
  }
  blocks.emplace_back(std::move(table));
  if (kernel.bits_compared() > 0) blocks.emplace_back(unclaimed_bits(kernel));
  if (const std::string plot = histogram(measured, fmt::format("Utilisation of {} in {}, {} judged cases", kernel.name,
                                                               kernel.dtype, measured.judged()));
      !plot.empty()) {
    blocks.emplace_back(Drawing{plot,
                                "Utilisation: error over allowed error, by judged case (heights as square roots). "
                                "Right of the line is violated."});
  }
  if (Listing reasons = reasons_list(all); !reasons.items.empty())
    blocks.emplace_back(Group{Group::Kind::folded, "Why cases were not judged", {std::move(reasons)}});
  return {Group::Kind::kernel, {title_of(kernel.name, kernel.dtype), " ", badge(kernel.verdict)},
          std::move(blocks),   tags_of(kernel),
          anchor_of(kernel),   open};
}

}  // namespace

Blocks kernels_page(const Reported& run) {
  const Summary& summary = run.summary;
  // Of many nobody reads every table.
  constexpr std::size_t few = 6;
  Blocks blocks;
  for (const KernelSummary& kernel : summary.kernels)
    blocks.emplace_back(kernel_group(run, kernel, summary.kernels.size() <= few));
  return blocks.empty() ? Blocks{Paragraph{"No kernel was checked."}} : blocks;
}

Brief kernels_brief(const Reported& run) {
  const Summary& summary = run.summary;
  const Journal& journal = run.journal;
  std::map<std::pair<std::string, std::string>, ToleranceRow> tolerances;
  for (ToleranceRow& row : rows_for_suites(tolerance_rows(summary, journal)))
    tolerances.try_emplace({row.kernel, row.dtype}, std::move(row));
  Table table{"", columns_of("kernel|dtype|verdict|#judged|#excused|#worst|of|reach|#atol|#rtol")};
  const auto add = [&](const KernelSummary& kernel) {
    const PropertySummary* worst = kernel.worst();
    const auto tolerance = tolerances.find({kernel.id, kernel.dtype});
    // Of a kernel that is wrong they would be what its mistakes leave.
    const bool measured = tolerance != tolerances.end() && kernel.verdict != Outcome::violated;
    const auto number = [&](double Tolerance::* which) {
      if (!measured) return std::string("–");
      return short_number(tolerance->second.tolerance.*which) + (tolerance->second.caution().empty() ? "" : " ?");
    };
    table.rows.push_back({{theirs(kernel.name), theirs(kernel.dtype), badge(kernel.verdict), kernel.judged(),
                           kernel.excused(), worst == nullptr ? "–" : short_number(worst->tally.worst_utilisation),
                           worst == nullptr ? Piece("") : theirs(worst->name), or_dash(reach_text(kernel)),
                           number(&Tolerance::atol), number(&Tolerance::rtol)}});
  };
  // The worst first: what is cut is what matters least.
  for (const Outcome outcome : {Outcome::violated, Outcome::inconclusive, Outcome::held, Outcome::skipped})
    for (const KernelSummary& kernel : summary.kernels)
      if (kernel.verdict == outcome) add(kernel);
  return {"Kernels",
          "rows",
          {Paragraph{fmt::format(
              "Worst: the largest error as a share of the proved bound; at most 1 is held. atol and rtol: twice what "
              "would have accepted every right answer of this run to ordinary inputs; ? where these were too few to "
              "rely on. Reach: {}.",
              reach_explained)}},
          {std::move(table)}};
}

}  // namespace attest
