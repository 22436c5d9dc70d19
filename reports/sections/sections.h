// The sections of a report: what each says on the page and in summary.md, and the list of them, which both follow.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/journal/journal.h"
#include "reports/conclusion/conclusion.h"
#include "reports/page/block.h"
#include "reports/results/tolerance.h"
#include "reports/sections/self_test.h"

namespace attest {

/// A run of which a report is made.
struct Reported {
  const Summary& summary;
  const Journal& journal;     ///< canonical; with meta, where it is known
  const std::string& folder;  ///< the run's, for replay lines; empty: unknown
  const Conclusion& conclusion;
  Blocks plots = {};  ///< the page's (plots.h)
};

/// A section of summary.md, which has little room: of the entries those that fit, from the first on.
struct Brief {
  std::string_view heading;  ///< empty: the section has none
  std::string_view what;     ///< names the entries; empty: there is no such section, nor room for it
  Blocks before;
  Blocks entries;  ///< without any the section is left out
};

/// What is wrong with each violated kernel, told once: a card for each cause.
[[nodiscard]] Blocks causes_page(const Reported& run);
[[nodiscard]] Brief causes_brief(const Reported& run);
/// What stands under the page's title: the verdict, counts and warnings; of proofs alone what is proved.
[[nodiscard]] Blocks headline_page(const Reported& run);
[[nodiscard]] Brief headline_brief(const Reported& run);
/// Verdict and worst share by kernel and dtype.
[[nodiscard]] Blocks verdicts_page(const Reported& run);
/// Counts by verdict, how much was covered, and the suite's own score.
[[nodiscard]] Blocks coverage_page(const Reported& run);
/// What is otherwise than in the baseline.
[[nodiscard]] Blocks changes_page(const Reported& run);
[[nodiscard]] Brief changes_brief(const Reported& run);
/// A line of each kernel and dtype, to copy. Empty where no errors were measured.
[[nodiscard]] Blocks tolerances_page(const std::vector<ToleranceRow>& rows, const Summary& summary);
/// Errors of all cases, as shares of what is allowed, and by class of case. Empty where none were measured.
[[nodiscard]] Blocks errors_page(const Reported& run);
/// The formulas of numbers.md, each where the explanations of columns lead to. `alarm`: those of the alarm as well, of
/// which a run without it says nothing.
[[nodiscard]] Blocks numbers_page(bool alarm);
/// What would explain the findings, and these by kernel and property: cards of the first ones, a line of each further.
[[nodiscard]] Blocks findings_page(const Reported& run);
[[nodiscard]] Brief findings_brief(const Reported& run);
/// What lies beyond the probabilistic bound; empty where no alarm was asked for.
[[nodiscard]] Blocks alarm_page(const Reported& run);
/// Properties down; across, what is proved of the real numbers, and every kernel in every dtype: the strongest evidence
/// there is for each. Below, every line of the proofs. Empty where there is neither a kernel nor a proof.
[[nodiscard]] Blocks evidence_page(const Reported& run);
/// For each kernel and dtype the figures of every property and a histogram of utilisation.
[[nodiscard]] Blocks kernels_page(const Reported& run);
/// A row for each, the worst first, with the tolerance to copy.
[[nodiscard]] Brief kernels_brief(const Reported& run);
/// The worst case of each property, kernel and dtype; in summary.md of each kernel and dtype.
[[nodiscard]] Blocks worst_cases_page(const Reported& run);
[[nodiscard]] Brief worst_cases_brief(const Reported& run);
/// Judged cases by how deep the certified answer had to go.
[[nodiscard]] Blocks oracle_page(const Reported& run);
/// Seed, versions, machine, arguments and manifests.
[[nodiscard]] Blocks environment_page(const Reported& run);
/// A table for each group of kinds, kinds that the generators know and the run never drew included, one of bit classes
/// by dtype, and one of what was too little. Empty where nothing was drawn: captured cases, or a journal of before it
/// held these counts.
[[nodiscard]] Blocks drawn_page(const Reported& run);
/// The same as pictures: M and N together, and dk. Empty where the journal does not have them.
[[nodiscard]] Blocks shapes_pictures(const Reported& run);
/// Judged cases by the classes of their shapes (shape_class.h). Empty where no case was judged.
[[nodiscard]] Blocks shapes_page(const Reported& run);
/// What tiles make of them; empty where they were not recorded.
[[nodiscard]] Brief shapes_brief(const Reported& run);
/// What was too little.
[[nodiscard]] Brief drawn_brief(const Reported& run);
[[nodiscard]] Brief notes_brief(const Reported& run);
/// What attention has elsewhere and no case can ask for.
inline constexpr std::string_view no_run_covers = "gradients of caches";
/// What the run says nothing about, and why.
[[nodiscard]] Blocks uncovered_page(const Reported& run);
[[nodiscard]] Brief uncovered_brief(const Reported& run);

/// A section, as both printers have it.
struct Section {
  std::string_view id, title, note;               ///< of the page
  Blocks (*page)(const Reported& run);            ///< null: the page has none; without blocks it is left out
  Brief (*brief)(const Reported& run) = nullptr;  ///< null: summary.md has none
  std::size_t share = 0;                          ///< of summary.md, as all shares go; what is left the next ones have
  std::size_t lines = 0;                          ///< the same of a comment; 0: it has none of it
  bool folded = true;                             ///< on the page: it is not what a reader comes for
  bool beside = false;                            ///< on the page: stands beside its neighbour, where there is room
};
inline constexpr std::array sections{
    Section{"headline", "", "", nullptr, headline_brief, /*share=*/2500, /*lines=*/8},
    Section{"verdicts", "Verdicts", "", verdicts_page, nullptr, /*share=*/0, /*lines=*/0, /*folded=*/false},
    Section{"causes", "What is wrong", "", causes_page, causes_brief, /*share=*/6000, /*lines=*/18,
            /*folded=*/false},
    Section{"changes", "What changed", "", changes_page, changes_brief, /*share=*/5500, /*lines=*/11,
            /*folded=*/false},
    Section{"tolerances", "Tolerances", "",
            [](const Reported& run) { return tolerances_page(tolerance_rows(run.summary, run.journal), run.summary); },
            kernels_brief, /*share=*/14000, /*lines=*/3, /*folded=*/false, /*beside=*/true},
    Section{"judged-shapes", "Shapes judged", "", shapes_pictures, nullptr, /*share=*/0, /*lines=*/0, /*folded=*/false,
            /*beside=*/true},
    Section{"coverage", "Coverage", "", coverage_page},
    Section{"errors", "Errors", "", errors_page},
    Section{"plots", "Plots", "", [](const Reported& run) { return run.plots; }},
    Section{"findings", "Findings", "", findings_page, findings_brief, /*share=*/20500},
    Section{"alarms", "Alarm",
            "Beyond the bound that holds if rounding errors of sums are random. Worth a look, and no verdict. Worst: "
            "error over that bound.",
            alarm_page},
    Section{"evidence", "Evidence",
            "✓ held on so many cases, ✗ violated by so many, ? undecided; an empty cell was not asked, – not judged. "
            "Proofs are about the real numbers, never about rounding; what only held on cases is not proved.",
            evidence_page},
    Section{"kernels", "By kernel",
            "Excused: outside the domain of definition, or the bound says nothing; never counted as held. p99 and p50: "
            "quantiles over judged cases, as upper bounds.",
            kernels_page},
    Section{"worst-cases", "Worst known cases",
            "A lower bound on the true worst error: the worst that these cases showed.", worst_cases_page,
            worst_cases_brief, /*share=*/7000},
    Section{"search", "Search", "",
            [](const Reported& run) { return self_test_page(std::filesystem::path(run.folder)); }},
    Section{"oracle", "Oracle", "How deep the certified answer had to go to decide each judged case.", oracle_page},
    Section{"environment", "Environment", "", environment_page},
    Section{"drawn", "What was drawn",
            "Judged cases by how they were made, a case counted for every kernel that was judged on it; skipped, "
            "excused and inconclusive ones are not counted.",
            drawn_page, drawn_brief, /*share=*/5000},
    Section{
        "shapes", "Shapes",
        "Judged cases by their shapes, a case counted for every kernel that was judged on it; \"of\" counts what the "
        "kernels refused, what was excused and what could not be decided as well.",
        shapes_page, shapes_brief, /*share=*/2000},
    Section{"notes", "Notes", "", nullptr, notes_brief, /*share=*/5000},
    Section{"not-covered", "Not covered", "", uncovered_page, uncovered_brief, /*share=*/6000},
    Section{"numbers", "How each number is computed", "",
            [](const Reported& run) { return numbers_page(run.summary.alarm > 0); }},
};

/// Proofs and nothing that was run on a kernel: of these a verdict says nothing.
[[nodiscard]] bool holds_proofs_alone(const Summary& summary, const Journal& journal);
/// "12 properties over the real numbers: 5 proved for all shapes …", each by its strongest evidence, which stands
/// beside it in the evidence's table; what contradicts a theorem first.
[[nodiscard]] Text proofs_alone(const Journal& journal);

/// The id of the kernel's place in "By kernel", and of that of a property's findings.
[[nodiscard]] std::string anchor_of(const KernelSummary& kernel);
[[nodiscard]] std::string anchor_of(const KernelSummary& kernel, const PropertySummary& property);
[[nodiscard]] Tags tags_of(const KernelSummary& kernel);
/// With its verdict.
[[nodiscard]] Tags tags_of(const KernelSummary& kernel, const PropertySummary& property);
/// The kernel's name, and the dtype in softer words.
[[nodiscard]] Text title_of(std::string_view kernel, std::string_view dtype);
/// "`flash` in `f32`"
[[nodiscard]] Text name_in(const KernelSummary& kernel);
/// The worst utilisation; a dash where no case was judged.
[[nodiscard]] std::string worst_text(const Tally& tally);
/// The largest utilisation against the exact answer, subnormal rounding apart; a dash where no errors were measured.
[[nodiscard]] std::string worst_share_text(const KernelSummary& kernel);
/// "a, b and 3 more"
[[nodiscard]] Text first_of(std::span<const std::string> names, std::size_t most);
/// Dtypes of the run's kernels, f64 first.
[[nodiscard]] std::vector<std::string> dtypes_of(const Summary& summary);

}  // namespace attest
