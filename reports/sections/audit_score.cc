#include "reports/sections/audit_score.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "core/support/errors.h"
#include "core/support/folder.h"
#include "reports/results/audit.h"
#include "reports/run_folder/run_folder.h"
#include "reports/sections/json_counts.h"

namespace attest {

AuditScore parse_audit_score(std::string_view text, std::string_view source) {
  AuditScore score;
  try {
    const auto json = nlohmann::json::parse(text);
    if (json.at("schema") != "attest-audit/1") throw UsageError(fmt::format("{}: is no attest-audit/1", source));
    score.caught = count_of(json.at("caught"));
    score.catchable = count_of(json.at("catchable"));
    score.control_cases_flagged = count_of(json.at("control_cases_flagged"));
    score.control_cases_judged = count_of(json.at("control_cases_judged"));
    score.cases_per_fault = count_of(json.at("cases_per_fault"));
    if (json.contains("check_cases")) score.check_cases = count_of(json.at("check_cases"));
    if (!json.at("seed").is_number_unsigned()) throw nlohmann::json::type_error::create(302, "not a seed", &json);
    json.at("seed").get_to(score.seed);
    json.at("interrupted").get_to(score.interrupted);
    json.at("not_caught").get_to(score.not_caught);
    if (json.contains("kinds")) {
      score.cases_of_short_check = count_of(json.at("cases_of_short_check"));
      for (const nlohmann::json& kind : json.at("kinds"))
        score.kinds.push_back({kind.at("kind"), count_of(kind.at("faults")), count_of(kind.at("caught")),
                               count_of(kind.at("caught_by_short_check"))});
    }
  } catch (const nlohmann::json::exception&) {
    throw UsageError(fmt::format("{}: is not what attest audit writes; run it again", source));
  }
  return score;
}

Blocks audit_page(const std::filesystem::path& folder) {
  if (folder.empty()) return {};
  const std::optional<Folder> files = Folder::if_there(folder);
  if (!files || !files->holds("audit.json")) {
    return {Paragraph{{"The suite's own score, of the faults planted in it, is not in this folder: ",
                       code(fmt::format("{} audit --out {}", command_name(), shell_quoted(name_of_folder(folder)))),
                       " puts it there."},
                      "note"}};
  }
  return audit_page(parse_audit_score(files->read("audit.json"), (folder / "audit.json").string()));
}

Blocks audit_page(const AuditScore& score) {
  const Text missed = score.not_caught.empty()
                          ? Text()
                          : Text{", all but ", theirs(fmt::format("{}", fmt::join(score.not_caught, ", ")))};
  Blocks blocks{
      Paragraph{{"The suite's own score: ", strong(fmt::format("{} of {}", score.caught, score.catchable)),
                 fmt::format(" planted faults caught within {}", audit_cases(score.cases_per_fault, score.check_cases)),
                 missed, "; ", strong(fmt::format("{} of {}", score.control_cases_flagged, score.control_cases_judged)),
                 fmt::format(" cases of kernels that are right flagged (seed {}){}.", score.seed,
                             score.interrupted ? "; the audit was interrupted" : "")},
                "",
                "audit"}};
  if (score.kinds.empty()) return blocks;
  Table table{"", columns_of("kind of fault|#faults|#caught")};
  table.columns.push_back({.name = fmt::format("by {} cases of a property", score.cases_of_short_check),
                           .number = true,
                           .about = "caught by a short check"});
  for (const AuditScore::Kind& kind : score.kinds)
    table.rows.push_back({{Text{theirs(kind.name)}, kind.faults, kind.caught, kind.by_short_check}});
  blocks.emplace_back(std::move(table));
  return blocks;
}

}  // namespace attest
