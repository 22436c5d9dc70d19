#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel/answered_kernel.h"
#include "core/oracle/oracle.h"
#include "core/problem/case_file.h"
#include "core/problem/cost.h"
#include "core/support/json_writer.h"
#include "core/support/names.h"
#include "properties/catalogue/property.h"
#include "properties/diagnosis/misreadings.h"
#include "reports/service/asked.h"
#include "reports/service/requests.h"

namespace attest {
namespace {

/// What a wrong answer may be the right answer to takes tens of passes over a problem: looked for where that is no
/// matter.
constexpr double most_to_read = 0x1p24;

std::vector<std::string> readings_of(const AnsweredCase& asked, const Manifest& manifest) {
  const Case& c = asked.value;
  if (c.operation != Operation::attention || asked.found.dtype() != c.dtype() || cost_of(c) > most_to_read) return {};
  auto calls = std::make_shared<const std::vector<AnsweredCase>>(1, asked);
  AnsweredKernel kernel("the function", manifest, std::move(calls));
  return misreadings_of(kernel, std::span(&c, 1));
}

std::int64_t rows_to_judge(const Request& request, const Case& c) {
  Judging judging{.rows = Judging::by_size};
  request.said.read("rows", WholeNumbers{Judging::all_rows, most_whole_number}, judging.rows);
  return judging.rows_of(c);
}

void write_element(JsonWriter& json, const AnsweredCase& asked, const Arithmetic& arithmetic, std::int64_t element) {
  json.member("found", asked.found[element]);
  if (asked.value.operation != Operation::attention) return;
  const std::int64_t width = asked.found.shape()[3], row = element / width;
  const ElementFacts facts =
      exact_elements(asked.value, arithmetic, std::span(&row, 1)).at(static_cast<std::size_t>(element - row * width));
  json.key("exact").begin_array().value(facts.exact.lower).value(facts.exact.upper).end_array();
}

}  // namespace

Answer answer_judge(const Request& request) {
  const AnsweredCase asked = decode_answered_case(request.file, "the problem");
  const Case& c = asked.value;
  if (!asked.found.present()) throw UsageError("the problem has no answer to judge, a tensor \"found\"");
  const Manifest manifest = manifest_asked(request, c);
  Arithmetic arithmetic = manifest.arithmetic_for(c);
  arithmetic.output = asked.found.dtype();
  std::int64_t judged = 0, beyond = 0;
  OracleOptions options{.ignores_dead_values = manifest.claims_to(Claim::ignores_dead_values),
                        .rows = rows_to_judge(request, c)};
  Verdict verdict;
  if (c.operation == Operation::attention) {
    options.element = [&](const JudgedElement& e) {
      ++judged;
      if (e.outcome == Outcome::violated) ++beyond;
    };
    verdict = judge_attention(c, asked.found, {}, arithmetic, options);
  } else {
    options.rows = 0;
    verdict = judge_multihead(c, asked.found, arithmetic, options);
  }
  const bool violated = verdict.outcome == Outcome::violated;
  JsonWriter json;
  json.begin_object().member("verdict", name_of(verdict.outcome)).member("reason", verdict.reason);
  json.member("utilisation", verdict.utilisation).member("error", verdict.error).member("allowed", verdict.allowed);
  json.member("element", verdict.element).member("level", verdict.level);
  json.member("rows_judged", verdict.rows_judged).member("rows", verdict.rows);
  json.member("elements_judged", judged).member("elements_beyond", beyond);
  if (verdict.element >= 0) write_element(json, asked, arithmetic, verdict.element);
  json.key("readings").begin_array();
  if (violated)
    for (const std::string& reading : readings_of(asked, manifest)) json.value(reading);
  json.end_array().end_object();
  return {.members = json.text().substr(1, json.text().size() - 2)};
}

}  // namespace attest
