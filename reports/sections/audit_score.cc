#include "reports/sections/audit_score.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/support/errors.h"
#include "core/support/folder.h"
#include "reports/run/run_folder.h"
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
    if (!json.at("seed").is_number_unsigned()) throw nlohmann::json::type_error::create(302, "not a seed", &json);
    json.at("seed").get_to(score.seed);
    json.at("interrupted").get_to(score.interrupted);
    json.at("not_caught").get_to(score.not_caught);
  } catch (const nlohmann::json::exception&) {
    throw UsageError(fmt::format("{}: is not what attest audit writes; run it again", source));
  }
  return score;
}

Blocks audit_page(const std::filesystem::path& folder) {
  if (folder.empty()) return {};
  const std::optional<Folder> files = Folder::if_there(folder);
  if (!files || !files->holds("audit.json")) {
    return {Paragraph{
        {"The suite's own score, of the faults planted in it, is not in this folder: ",
         code(fmt::format("{} audit --out {}", command_name(), shell_quoted(folder.string()))), " puts it there."},
        "note"}};
  }
  return audit_page(parse_audit_score(files->read("audit.json"), (folder / "audit.json").string()));
}

Blocks audit_page(const AuditScore& score) {
  const Text missed = score.not_caught.empty()
                          ? Text()
                          : Text{", all but ", theirs(fmt::format("{}", fmt::join(score.not_caught, ", ")))};
  return {Paragraph{{"The suite's own score: ", strong(fmt::format("{} of {}", score.caught, score.catchable)),
                     fmt::format(" planted faults caught within {} cases each", score.cases_per_fault), missed, "; ",
                     strong(fmt::format("{} of {}", score.control_cases_flagged, score.control_cases_judged)),
                     fmt::format(" cases of kernels that are right flagged (seed {}){}.", score.seed,
                                 score.interrupted ? "; the audit was interrupted" : "")},
                    "",
                    "audit"}};
}

}  // namespace attest
