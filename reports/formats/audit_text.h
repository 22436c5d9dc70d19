// What an audit found, for a terminal, a file to read and a file to compute with.
#pragma once

#include <string>

#include "reports/results/audit.h"

namespace attest {

/// A dozen lines: what was caught, what cried wolf, what is vacuous, and the rules of others beside it.
[[nodiscard]] std::string audit_summary(const AuditResult& result, const AuditPlan& plan);
/// The whole of it as Markdown: a row per fault, per property, per control and per rule.
[[nodiscard]] std::string audit_markdown(const AuditResult& result, const AuditPlan& plan);
/// The same as JSON, schema "attest-audit/1".
[[nodiscard]] std::string audit_json(const AuditResult& result, const AuditPlan& plan);

}  // namespace attest
