#include "reports/causes/causes.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/support/json_writer.h"

namespace attest {
namespace {

using Json = nlohmann::json;

/// Of another version, or forged, it is none.
std::optional<Cause> read_cause(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  try {
    Cause cause;
    json.at("kernel").get_to(cause.kernel);
    json.at("dtypes").get_to(cause.dtypes);
    json.at("properties").get_to(cause.properties);
    json.at("misreadings").get_to(cause.misreadings);
    if (json.contains("right")) json["right"].get_to(cause.right);  // of before: not asked
    json.at("condition").get_to(cause.condition);
    cause.by_own_answers = json.value("by_own_answers", false);  // of before: not asked
    json.at("cases").get_to(cause.cases);
    json.at("violated").get_to(cause.violated);
    json.at("others").get_to(cause.others);
    json.at("others_violated").get_to(cause.others_violated);
    const Json& example = json.at("example");
    cause.example = {example.at("property"), cause.kernel, example.at("dtype")};
    example.at("k").get_to(cause.example_k);
    return cause;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

/// What another part of the run says of the same mistake.
void join(Cause& cause, Cause other) {
  const auto add_new = [](std::vector<std::string>& words, std::vector<std::string>& others) {
    for (std::string& word : others)
      if (std::ranges::find(words, word) == words.end()) words.push_back(std::move(word));
  };
  add_new(cause.dtypes, other.dtypes);
  add_new(cause.properties, other.properties);
  cause.by_own_answers = cause.by_own_answers || other.by_own_answers;
  cause.cases += other.cases;
  cause.violated += other.violated;
  cause.others += other.others;
  cause.others_violated += other.others_violated;
}

}  // namespace

bool is_against_exact(const FindingRecord& finding) {
  if (finding.compared.size() != 1 || !finding.compared[0].exact) return false;
  const Verdict& verdict = finding.verdict;
  if (verdict.violation != Violation::bound) return true;
  const double found = finding.compared[0].found;
  const auto [lower, upper] = *finding.compared[0].exact;
  const double farthest = std::max(std::abs(found - lower), std::abs(found - upper));
  const double nearest = std::max({0.0, lower - found, found - upper});
  // Of the error, too, an upper end is kept.
  constexpr double slack = 1e-6;
  return verdict.error >= nearest * (1 - slack) && verdict.error <= farthest * (1 + slack);
}

MetaRecord record_of(const Cause& cause) {
  return {std::string(cause_event), {{"kernel", cause.kernel}, {"cause", to_json(cause)}}};
}

std::string to_json(const Cause& cause) {
  JsonWriter json;
  const auto list = [&](std::string_view name, const std::vector<std::string>& words) {
    json.key(name).begin_array();
    for (const std::string& word : words) json.value(word);
    json.end_array();
  };
  json.begin_object().member("kernel", cause.kernel);
  list("dtypes", cause.dtypes);
  list("properties", cause.properties);
  list("misreadings", cause.misreadings);
  list("right", cause.right);
  json.member("condition", cause.condition)
      .member("by_own_answers", cause.by_own_answers)
      .member("cases", cause.cases)
      .member("violated", cause.violated)
      .member("others", cause.others)
      .member("others_violated", cause.others_violated);
  json.key("example").begin_object().member("property", cause.example.property).member("dtype", cause.example.dtype);
  json.member("k", cause.example_k).end_object();
  return json.end_object().text();
}

std::vector<Cause> causes_in(const Journal& journal, const std::string& kernel) {
  std::vector<Cause> causes, seen;
  for (const MetaRecord& meta : journal.meta) {
    const auto text = meta.facts.find("cause");
    if (meta.event != cause_event || text == meta.facts.end()) continue;
    std::optional<Cause> cause = read_cause(text->second);
    if (!cause || cause->kernel != kernel || std::ranges::find(seen, *cause) != seen.end()) continue;
    seen.push_back(*cause);
    const auto same = std::ranges::find_if(causes, [&](const Cause& one) {
      return one.condition == cause->condition && one.misreadings == cause->misreadings;
    });
    if (same == causes.end())
      causes.push_back(std::move(*cause));
    else
      join(*same, std::move(*cause));
  }
  return causes;
}

}  // namespace attest
