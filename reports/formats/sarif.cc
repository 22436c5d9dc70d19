#include "reports/formats/sarif.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/kernel/manifest.h"
#include "core/support/errors.h"
#include "core/support/source_place.h"
#include "core/support/visible.h"
#include "properties/catalogue/property.h"
#include "reports/results/cause_words.h"
#include "reports/run_folder/run_folder.h"
#include "reports/run_folder/version.h"
#include "reports/text/text.h"

namespace attest {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* run_base = "RUN";

Json message(const std::string& text) {
  return {{"text", text.empty() ? "no words" : visible(text, " ", "\n")}};
}

Json rule_of(const std::string& name) {
  Json rule{{"id", name}};
  const auto known = std::ranges::find(catalogue(), std::string_view(name), &Property::name);
  rule["shortDescription"] = message(sentence(name));
  if (known != catalogue().end()) {
    const Property& property = **known;
    rule["fullDescription"] = message(sentence(property.statement));
    std::string help = sentence(property.statement);
    help += fmt::format("\nIn floating point: {}\nSource: {}\nNeeds: {}", sentence(property.floating_point),
                        property.source == "+" ? "none of the documents states it." : sentence(property.source),
                        sentence(property.needs));
    rule["help"] = message(help);
  }
  rule["defaultConfiguration"] = {{"level", "error"}};
  return rule;
}

Json location_of(const std::string& file, bool in_a_run) {
  Json artifact{{"uri", uri_of_path(file)}};
  if (in_a_run) artifact["uriBaseId"] = run_base;
  // No line is meant, but readers that show results beside code take none without a region.
  return {{"physicalLocation", {{"artifactLocation", artifact}, {"region", {{"startLine", 1}}}}}};
}

/// Such a result is no new alert.
void suppress(Json& result) {
  result["suppressions"] =
      Json::array({{{"kind", "external"}, {"justification", "expected by the file of known findings"}}});
}

Json result_of(const KernelSummary& kernel, const FindingRecord& finding, std::size_t rule, const std::string& folder,
               bool expected) {
  const bool violated = finding.verdict.outcome == Outcome::violated;
  const std::string& property = finding.subject.property;
  Json result{{"ruleId", property}, {"ruleIndex", rule}};
  // Of kinds other than fail the level must be none.
  result["kind"] = violated ? "fail" : "open";
  result["level"] = violated ? "error" : "none";
  result["message"] =
      message(fmt::format("{} {} {} in {}: {}\nreplay: {}", kernel.name, violated ? "violates" : "is undecided for",
                          property, kernel.dtype, finding.verdict.reason, replay_line(folder, finding.case_file)));
  result["locations"] = Json::array({location_of(finding.case_file, !folder.empty())});
  result["partialFingerprints"] = {{"attestFinding/v1", fmt::format("{}/{}/{}/{}/{}", property, kernel.id, kernel.dtype,
                                                                    finding.kind(), finding.k)}};
  if (expected) suppress(result);
  Json facts{{"kernel", kernel.id}, {"dtype", kernel.dtype}, {"case", finding.k}};
  facts["class"] = finding.kind();
  // JSON has no infinity.
  facts["utilisation"] = short_number(finding.verdict.utilisation);
  result["properties"] = std::move(facts);
  return result;
}

/// By what a cause is the same one in the next run, whatever is drawn there; conditions that are found among what is
/// drawn are none of that.
std::string known_by(const CauseWords& cause) {
  if (!cause.cause->misreadings.empty()) return fmt::format("{}", fmt::join(cause.cause->misreadings, ", "));
  return cause.kind;
}

/// Whether the kernel fails that property by it.
bool tells_of(const Cause& cause, const KernelSummary& kernel, const PropertySummary& property) {
  return cause.kernel == kernel.id && std::ranges::find(cause.dtypes, kernel.dtype) != cause.dtypes.end() &&
         std::ranges::find(cause.properties, property.name) != cause.properties.end();
}

/// Whether all that fails by it is expected.
bool is_expected(const Summary& summary, const Conclusion& conclusion, const Cause& cause) {
  for (const KernelSummary& kernel : summary.kernels)
    for (const PropertySummary& property : kernel.properties)
      if (tells_of(cause, kernel, property) && conclusion.of(kernel, property) == Counted::violated) return false;
  return true;
}

/// One alert for a cause, however many properties fail by it. `again`: how many before it are known by the same.
Json cause_result(const CauseWords& cause, std::int64_t again, std::size_t rule, const std::string& folder,
                  const Json& source) {
  std::string text = fmt::format("{} in {}: {}", cause.kernel, cause.dtypes, cause.what);
  const auto add = [&](std::string_view label, const std::string& said) {
    if (!said.empty()) text += fmt::format("\n{}: {}", label, said);
  };
  add("why", cause.why);
  add("when", cause.when);
  add("smallest", cause.smallest);
  add("found", cause.found);
  add("right", cause.right);
  add("fails", cause.fails);
  add("replay", cause.replay);
  Json result{{"ruleId", cause.cause->example.property}, {"ruleIndex", rule}, {"kind", "fail"}, {"level", "error"}};
  result["message"] = message(text);
  const Json at_case = location_of(cause.case_file.empty() ? "summary.md" : cause.case_file, !folder.empty());
  result["locations"] = Json::array({source.is_null() ? at_case : source});
  if (!source.is_null()) result["relatedLocations"] = Json::array({at_case});
  std::string print = fmt::format("{}/{}", cause.cause->kernel, known_by(cause));
  if (again > 0) print += fmt::format("/{}", again + 1);
  result["partialFingerprints"] = {{"attestCause/v1", valid_utf8(print)}};
  result["properties"] = {{"kernel", cause.cause->kernel},
                          {"dtypes", cause.cause->dtypes},
                          {"properties", cause.cause->properties},
                          {"condition", cause.cause->condition}};
  return result;
}

/// Where a kernel's source stands, as the run was told it or the manifest says it; null where neither does.
Json source_of(const Journal& journal, const std::string& kernel) {
  std::string source;
  for (const MetaRecord& meta : journal.meta)
    if (const auto named = meta.facts.find(source_fact); meta.event == "begin" && named != meta.facts.end())
      source = named->second;
  const auto record = std::ranges::find(journal.kernels, kernel, &KernelRecord::id);
  if (source.empty() && record != journal.kernels.end() && !record->manifest.empty()) {
    try {
      source = parse_manifest(record->manifest, kernel).source;
    } catch (const UsageError&) {
      return nullptr;  // of another version, or somebody else's
    }
  }
  const std::optional<SourcePlace> place = source_place(source);
  if (!place) return nullptr;
  Json location = location_of(place->file, /*in_a_run=*/false);
  location["physicalLocation"]["region"]["startLine"] = place->line;
  return location;
}

constexpr const char *rule_of_runs = "run", *rule_of_shapes = "shapes";

/// What was hardly tested, which no case shows.
Json open_result(const KernelSummary& kernel, const std::string& id, const std::string& why, std::size_t rule,
                 bool in_a_run) {
  Json result{{"ruleId", id}, {"ruleIndex", rule}, {"kind", "open"}, {"level", "none"}};
  result["message"] = message(fmt::format("{} is undecided for {} in {}: {}", kernel.name, id, kernel.dtype, why));
  result["locations"] = Json::array({location_of("summary.md", in_a_run)});
  result["partialFingerprints"] = {{"attestCoverage/v1", fmt::format("{}/{}/{}", id, kernel.id, kernel.dtype)}};
  result["properties"] = {{"kernel", kernel.id}, {"dtype", kernel.dtype}};
  return result;
}

/// What is wrong with the run as a whole: "WORSE attention.oracle by mine in f32: errors grew …". The words up to the
/// colon are the same in the next run.
Json result_of(const std::string& problem, std::size_t rule, bool in_a_run) {
  Json result{{"ruleId", rule_of_runs}, {"ruleIndex", rule}, {"kind", "fail"}, {"level", "error"}};
  result["message"] = message(problem);
  result["locations"] = Json::array({location_of("summary.md", in_a_run)});
  result["partialFingerprints"] = {{"attestProblem/v1", valid_utf8(problem.substr(0, problem.find(": ")))}};
  return result;
}

Json notifications_of(const Summary& summary, const Conclusion& conclusion) {
  Json notifications = Json::array();
  const auto add = [&](const char* level, const std::string& text) {
    notifications.push_back({{"level", level}, {"message", message(text)}});
  };
  for (const RunFault& fault : conclusion.faults) {
    std::string text = sentence(fault.words);
    text.front() = static_cast<char>(std::toupper(text.front()));
    add("error", text);
  }
  for (const KernelRecord& kernel : summary.not_started)
    add("warning", fmt::format("{} did not start: {}", kernel.id, kernel.not_started));
  for (const KernelNote& note : summary.notes) add("note", fmt::format("{}: {}", note.kernel, note.text));
  return notifications;
}

}  // namespace

std::string uri_of_path(std::string_view path) {
  std::string uri;
  for (const char c : path) {
    const bool unreserved = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (unreserved || std::string_view("-._~/").find(c) != std::string_view::npos)
      uri += c;
    else
      uri += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return uri;
}

std::string to_sarif(const Summary& summary, const Journal& journal, const std::string& folder,
                     const Conclusion& conclusion) {
  Json rules = Json::array(), results = Json::array();
  std::map<std::string, std::size_t> rule_index;
  for (const KernelSummary& kernel : summary.kernels) {
    for (const PropertySummary& property : kernel.properties) {
      const auto [rule, added] = rule_index.try_emplace(property.name, rules.size());
      if (added) rules.push_back(rule_of(property.name));
      const bool expected = conclusion.of(kernel, property) == Counted::expected;
      const bool told_by_cause =
          std::ranges::any_of(summary.causes, [&](const Cause& cause) { return tells_of(cause, kernel, property); });
      for (const FindingRecord& finding : property.findings)
        if (!told_by_cause || finding.verdict.outcome != Outcome::violated)
          results.push_back(result_of(kernel, finding, rule->second, folder, expected));
      if (property.hardly_tested && conclusion.of(kernel, property) == Counted::undecided)
        results.push_back(open_result(kernel, property.name, property.reason, rule->second, !folder.empty()));
    }
    if (conclusion.of_shapes(kernel) != Counted::undecided) continue;
    const auto [rule, added] = rule_index.try_emplace(rule_of_shapes, rules.size());
    if (added)
      rules.push_back({{"id", rule_of_shapes},
                       {"shortDescription", message("A kernel is judged on every class of shapes that it offers.")},
                       {"defaultConfiguration", {{"level", "error"}}}});
    results.push_back(open_result(kernel, rule_of_shapes, kernel.left_out, rule->second, !folder.empty()));
  }
  std::map<std::pair<std::string, std::string>, std::int64_t> times;
  for (const CauseWords& cause : words_of_causes(summary, folder, name_of_folder(folder))) {
    const std::int64_t again = times[{cause.cause->kernel, known_by(cause)}]++;
    const auto [rule, added] = rule_index.try_emplace(cause.cause->example.property, rules.size());
    if (added) rules.push_back(rule_of(cause.cause->example.property));
    results.push_back(cause_result(cause, again, rule->second, folder, source_of(journal, cause.cause->kernel)));
    if (is_expected(summary, conclusion, *cause.cause)) suppress(results.back());
  }
  if (!conclusion.problems.empty()) {
    for (const std::string& problem : conclusion.problems)
      results.push_back(result_of(problem, rules.size(), !folder.empty()));
    rules.push_back(
        {{"id", rule_of_runs},
         {"shortDescription", message("A run is no worse than its baseline and has the findings that are known.")},
         {"defaultConfiguration", {{"level", "error"}}}});
  }
  Json run{
      {"tool",
       {{"driver", {{"name", "Attest"}, {"version", version()}, {"semanticVersion", version()}, {"rules", rules}}}}}};
  Json invocation{{"executionSuccessful", !summary.interrupted && !summary.unfinished}};
  for (const MetaRecord& meta : journal.meta) {
    const auto time = meta.facts.find("time");
    if (time == meta.facts.end()) continue;
    if (meta.event == "begin" && !invocation.contains("startTimeUtc")) invocation["startTimeUtc"] = time->second;
    if (meta.event == "end") invocation["endTimeUtc"] = time->second;
  }
  if (Json notifications = notifications_of(summary, conclusion); !notifications.empty())
    invocation["toolExecutionNotifications"] = std::move(notifications);
  run["invocations"] = Json::array({invocation});
  if (!folder.empty()) {
    std::string whole = std::filesystem::absolute(folder).lexically_normal().string();
    if (!whole.ends_with('/')) whole += '/';
    run["originalUriBaseIds"] = {{run_base, {{"uri", "file://" + uri_of_path(whole)}}}};
  }
  run["columnKind"] = "utf16CodeUnits";
  run["results"] = std::move(results);
  const Json log{{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"}, {"version", "2.1.0"}, {"runs", {run}}};
  return visible_json(log.dump(1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace)) + '\n';
}

}  // namespace attest
