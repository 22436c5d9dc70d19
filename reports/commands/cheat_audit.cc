#include "reports/commands/cheat_audit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <system_error>

#include "core/isolation/walls/walls.h"
#include "properties/generators/draw.h"
#include "reports/commands/judge_run.h"
#include "reports/run/interrupt.h"
#include "reports/run/progress.h"
#include "reports/text/text.h"

namespace attest {
namespace {

/// As tasks for programs that write kernels ask: five calls with Gaussian numbers, of one shape.
constexpr int ordinary_calls = 5;
constexpr Extents ordinary_shape{
    .batch = 1, .heads = 4, .kv_heads = 4, .queries = 128, .keys = 128, .dk = 64, .dv = 64};

Case ordinary_case(DType dtype, std::uint64_t seed) {
  const Shapes shapes{.large = LargeCases::all, .given = {ordinary_shape}};
  Draw draw(dtype, seed, /*k=*/0, shapes);
  return draw.attention(period_of_definition).where([](Recipe& r) {
    r.scores = ScoreKind::gaussian, r.values = ValueKind::gaussian, r.scale = ScaleKind::inverse_root;
    r.mask = MaskKind::none, r.causal = Causal::none;
    r.layouts = {};
    r.override_count = 0;
  });
}

/// A call without an answer is rejected by every rule.
void ask_rules(AuditedCheat& audited, const Contract& contract) {
  KernelOptions options;
  options.interrupt = interrupt_descriptor();
  auto walls = std::make_shared<Walls>();
  walls->readable.emplace_back(cheat_folder());
  options.walls = std::move(walls);
  const DType dtype = contract.law.dtypes.front();
  try {
    const std::unique_ptr<Kernel> kernel = std::move(open_kernels(id_of(*audited.cheat), options).front());
    for (std::uint64_t call = 1; call <= ordinary_calls; ++call) {
      const Case c = ordinary_case(dtype, call);
      const Reply reply = kernel->run(c);
      audited.rejecting |=
          reply.status == CallStatus::ok ? Yardstick(c).rejecting(reply.out.tensor()) : RuleSet().set();
    }
  } catch (const KernelLoadError&) {
    audited.rejecting.set();
  }
}

std::vector<std::string> rules_text(const RuleSet& rules) {
  std::vector<std::string> names;
  for (std::size_t rule = 0; rule < other_rule_count; ++rule)
    if (rules[rule]) names.emplace_back(other_rules()[rule].name);
  return names;
}

}  // namespace

std::string id_of(const Cheat& cheat) {
  constexpr std::string_view honest = "honest-";
  return cheat.honest() ? fmt::format("honest:{}", cheat.name().substr(honest.size()))
                        : fmt::format("cheat:{}", cheat.name());
}

std::shared_ptr<const Contract> contract_for(const Cheat& cheat) {
  using nlohmann::json;
  json contract = json::parse(starter_contract("grouped-f32"));
  if (cheat.file.ends_with(".py")) {
    contract["name"] = "python-f32";
    contract["kernel"] = {{"dtypes", {"f32"}}, {"masks", {"bool"}}, {"limits", {{"min_queries", 1}, {"min_keys", 1}}}};
    contract["shapes"] = {"1,2,2,77,77,64", "1,2,2,128,700,64"};
    contract["cases"] = 400;
  }
  if (cheat.name() == "honest-bf16") {
    contract["name"] = "grouped-bf16";
    contract["kernel"]["dtypes"] = {"bf16"};
  }
  return std::make_shared<const Contract>(parse_contract(contract.dump(), contract["name"].get<std::string>()));
}

std::vector<AuditedCheat> audit_cheats(const std::vector<const Cheat*>& cheats, int jobs,
                                       const std::filesystem::path& folder, const std::function<bool()>& stop,
                                       const std::function<void(const AuditedCheat&)>& finished) {
  std::vector<AuditedCheat> all;
  for (const Cheat* const cheat : cheats) {
    if (stop()) break;
    const std::shared_ptr<const Contract> contract = contract_for(*cheat);
    AuditedCheat audited{.cheat = cheat};
    const std::filesystem::path place = folder / "judged";
    {
      const RunFolder run(place, RunFolder::Mode::overwrite);
      const JudgeRequest request{.kernel = id_of(*cheat), .jobs = jobs, .fail_fast = true, .quiet = true};
      const Judgement judgement = judge_run(request, contract, run, {}).judgement;
      audited.verdict = judgement.verdict;
      audited.cases = judgement.cases;
      audited.seconds = judgement.how.seconds;
      if (!judgement.causes.empty()) audited.what = judgement.causes.front().what;
    }
    std::error_code none;
    std::filesystem::remove_all(place, none);
    if (stop()) break;
    ask_rules(audited, *contract);
    finished(audited);
    all.push_back(std::move(audited));
  }
  return all;
}

std::string cheat_audit_text(const std::vector<AuditedCheat>& audited) {
  std::int64_t cheats = 0, failed = 0, honest = 0, passed = 0;
  std::array<std::int64_t, other_rule_count> let_pass{};
  for (const AuditedCheat& one : audited) {
    (one.cheat->honest() ? honest : cheats) += 1;
    if (one.cheat->honest()) {
      passed += one.verdict == Pass::pass ? 1 : 0;
      continue;
    }
    failed += one.verdict == Pass::fail ? 1 : 0;
    for (std::size_t rule = 0; rule < other_rule_count; ++rule) let_pass[rule] += one.rejecting[rule] ? 0 : 1;
  }
  std::string text = fmt::format("{} of {} cheats fail before the judge, {} of {} honest kernels pass\n", failed,
                                 cheats, passed, honest);
  for (const AuditedCheat& one : audited)
    if (!one.is_as_it_should_be()) text += fmt::format("  {}: {}\n", id_of(*one.cheat), name_of(one.verdict));
  text += fmt::format("Of {} ordinary calls of each, other rules let pass:\n", ordinary_calls);
  for (std::size_t rule = 0; rule < other_rule_count; ++rule)
    text += fmt::format("  {:>3} of {} cheats  {}\n", let_pass[rule], cheats, other_rules()[rule].name);
  return text;
}

std::string cheat_audit_markdown(const std::vector<AuditedCheat>& audited) {
  std::string text = "# Cheats before the judge\n\n" + cheat_audit_text(audited) +
                     "\n| kernel | it | caught by | verdict | judged cases | first cause | rejected by |\n"
                     "|---|---|---|---|---:|---|---|\n";
  for (const AuditedCheat& one : audited) {
    const std::vector<std::string> rules = rules_text(one.rejecting);
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", id_of(*one.cheat), one.cheat->does,
                        name_of(one.cheat->caught_by), name_of(one.verdict), with_commas(one.cases), one_line(one.what),
                        rules.empty() ? "no other rule" : fmt::format("{}", fmt::join(rules, ", ")));
  }
  return text;
}

std::string cheat_audit_json(const std::vector<AuditedCheat>& audited) {
  nlohmann::ordered_json json;
  json["schema"] = "attest-cheats/1";
  json["kernels"] = nlohmann::ordered_json::array();
  for (const AuditedCheat& one : audited) {
    nlohmann::ordered_json row;
    row["id"] = id_of(*one.cheat);
    row["does"] = one.cheat->does;
    row["honest"] = one.cheat->honest();
    row["caught_by"] = name_of(one.cheat->caught_by);
    row["verdict"] = name_of(one.verdict);
    row["cases"] = one.cases;
    row["seconds"] = one.seconds;
    row["what"] = one.what;
    row["rejected_by"] = rules_text(one.rejecting);
    json["kernels"].push_back(std::move(row));
  }
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace attest
