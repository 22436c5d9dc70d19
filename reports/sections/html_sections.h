// The sections of the report, each without its heading. `folder` is the run's, for replay lines; empty: unknown.
#pragma once

#include <string>

#include "core/journal/journal.h"
#include "reports/results/conclusion.h"

namespace attest {

/// What stands under the page's title: the verdict, counts and warnings.
[[nodiscard]] std::string headline_html(const Summary& summary, const Conclusion& conclusion);

/// Counts by verdict, how much was covered, the suite's own score, and verdict and worst utilisation by kernel and
/// dtype.
[[nodiscard]] std::string verdicts_html(const Summary& summary, const std::string& folder);

/// What would explain the findings, and these by kernel and property: cards of the first ones, a line of each further.
[[nodiscard]] std::string findings_html(const Summary& summary, const std::string& folder);

/// What lies beyond the probabilistic bound.
[[nodiscard]] std::string alarm_html(const Summary& summary, const std::string& folder);

/// For each kernel and dtype the figures of every property and a histogram of utilisation.
[[nodiscard]] std::string kernels_html(const Summary& summary);

/// The worst case of each property, kernel and dtype.
[[nodiscard]] std::string worst_cases_html(const Summary& summary, const std::string& folder);

/// Judged cases by how deep the certified answer had to go.
[[nodiscard]] std::string oracle_html(const Summary& summary);

/// What the run says nothing about, and why.
[[nodiscard]] std::string uncovered_html(const Summary& summary);

/// Properties down; across, what is proved of the real numbers, and every kernel in every dtype: the strongest evidence
/// there is for each. Below, every line of the proofs. Empty where there is neither a kernel nor a proof.
[[nodiscard]] std::string evidence_html(const Summary& summary, const Journal& journal);

/// Proofs and nothing that was run on a kernel: of these a verdict says nothing.
[[nodiscard]] bool holds_proofs_alone(const Summary& summary, const Journal& journal);
/// "Proofs of 12 properties: 5 coq-all-shapes, 7 symbolic", each by its strongest; what contradicts a theorem first.
[[nodiscard]] std::string proofs_text(const Journal& journal);

/// Seed, versions, machine, arguments and manifests.
[[nodiscard]] std::string environment_html(const Summary& summary, const Journal& journal);

}  // namespace attest
