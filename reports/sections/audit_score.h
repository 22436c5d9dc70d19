// The suite's own score on the report's page: what `attest audit` left in a run's folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "reports/page/block.h"

namespace attest {

/// The totals of an audit (audit_text.h).
struct AuditScore {
  std::int64_t caught = 0, catchable = 0;                            ///< planted faults
  std::int64_t control_cases_flagged = 0, control_cases_judged = 0;  ///< of kernels that are right
  std::int64_t cases_per_fault = 0, check_cases = 0;                 ///< as of AuditPlan
  std::uint64_t seed = 0;
  bool interrupted = false;
  std::vector<std::string> not_caught;
  struct Kind {
    std::string name;
    std::int64_t faults = 0, caught = 0, by_short_check = 0;
  };
  std::vector<Kind> kinds;                ///< none in what earlier versions wrote
  std::int64_t cases_of_short_check = 0;  ///< of each property
};

/// From the text of audit.json, schema "attest-audit/1". Throws UsageError "SOURCE: …" for other text.
[[nodiscard]] AuditScore parse_audit_score(std::string_view text, std::string_view source);

/// A paragraph with the score, and a table by kinds of faults where there are any.
[[nodiscard]] Blocks audit_page(const AuditScore& score);
/// A paragraph with the score of the audit in a run's folder, or with the line that makes one there; empty without a
/// folder. Throws as parse_audit_score.
[[nodiscard]] Blocks audit_page(const std::filesystem::path& folder);

}  // namespace attest
