#include "reports/run/case_table.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/measure/error_statistics.h"
#include "core/problem/selection.h"
#include "core/support/errors.h"
#include "core/support/json_writer.h"
#include "core/support/visible.h"

namespace attest {
namespace {

constexpr std::string_view header =
    "property,kernel,dtype,k,operation,batch,heads,kv_heads,queries,keys,dk,dv,c_q,c_k,c_v,d_o,causal,drawn,outcome,"
    "violation,share,error,allowed,element,level,condition,scaled_error,scaled_allowed,ulps,score_range,reason\n";

/// A word of anybody's, kernels included: in quotes where a comma, a quote or a space at an end would end it early.
std::string field(std::string_view text) {
  const std::string safe = visible(text, " ", " ");
  const bool plain = safe.find_first_of(",\"\r\n") == std::string::npos && safe == text &&
                     (safe.empty() || (safe.front() != ' ' && safe.back() != ' '));
  if (plain) return safe;
  std::string quoted = "\"";
  for (const char c : safe) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

std::string extents_in(const Case& c) {
  // Where memory ran out there is no problem.
  const Extents e = c.q().shape().rank() == 0 ? Extents{} : extents_of(c);
  return fmt::format("{},{},{},{},{},{},{},{},{},{},{}", e.batch, e.heads, e.kv_heads, e.queries, e.keys, e.dk, e.dv,
                     e.c_q, e.c_k, e.c_v, e.d_o);
}

std::string errors_in(const Verdict& verdict) {
  if (!verdict.errors) return ",,,,";
  const ErrorSample& sample = *verdict.errors;
  return fmt::format("{},{},{},{},{}", number_text(sample.condition), number_text(sample.scaled_error),
                     number_text(sample.scaled_allowed), number_text(sample.worst_ulp),
                     number_text(sample.score_range));
}

}  // namespace

CaseTable::CaseTable(std::filesystem::path file, bool resumes) : file_(std::move(file)) {
  std::error_code none;
  const bool goes_on = resumes && std::filesystem::exists(file_, none);
  out_.open(file_, goes_on ? std::ios::app : std::ios::trunc);
  append(goes_on ? "" : std::string(header));
}

std::string CaseTable::row(const Subject& subject, std::int64_t k, const Walked& walked) {
  const Verdict& verdict = walked.verdict;
  const bool judged = verdict.outcome == Outcome::held || verdict.outcome == Outcome::violated;
  const std::string numbers =
      judged ? fmt::format("{},{},{},{}", number_text(verdict.utilisation), number_text(verdict.error),
                           number_text(verdict.allowed), verdict.element)
             : ",,,";
  return fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", field(subject.property), field(subject.kernel),
                     field(subject.dtype), k, name_of(walked.problem.operation), extents_in(walked.problem),
                     name_of(walked.problem.causal), field(kinds_of(walked.problem)), name_of(verdict.outcome),
                     name_of(verdict.violation), numbers, verdict.level, errors_in(verdict), field(verdict.reason));
}

void CaseTable::append(const std::string& rows) {
  out_ << rows << std::flush;
  if (!out_) throw UsageError(fmt::format("--table: {} cannot be written: {}", file_.string(), std::strerror(errno)));
}

}  // namespace attest
