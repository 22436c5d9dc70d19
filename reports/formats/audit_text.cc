#include "reports/formats/audit_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/support/json_writer.h"
#include "reports/page/print.h"

namespace attest {
namespace {

struct Totals {
  std::int64_t catchable = 0, caught = 0, control_judged = 0, control_flagged = 0, control_calls = 0;
  std::array<std::int64_t, other_rule_count> told{}, controls_rejected{}, calls_rejected{};
  std::vector<std::string> missed, unseen, unseen_but_flagged, vacuous;
  std::vector<std::pair<std::string, std::string>> only_one;  ///< fault, property
  const AuditedKernel* slowest = nullptr;
};

Totals totals_of(const AuditResult& result) {
  Totals t;
  for (std::size_t n = 0; n < result.of_faults.size(); ++n) {
    const AuditedKernel& kernel = result.of_faults[n];
    if (!result.faults[n]->unseen.empty()) {
      (kernel.caught.empty() ? t.unseen : t.unseen_but_flagged).push_back(kernel.name);
      continue;
    }
    ++t.catchable;
    if (kernel.caught.empty()) t.missed.push_back(kernel.name);
    if (!kernel.caught.empty()) {
      ++t.caught;
      if (t.slowest == nullptr || *kernel.needed() > *t.slowest->needed()) t.slowest = &kernel;
    }
    if (kernel.caught.size() == 1) t.only_one.emplace_back(kernel.name, kernel.caught.begin()->first);
    for (std::size_t rule = 0; rule < other_rule_count; ++rule) t.told[rule] += kernel.told_apart[rule] ? 1 : 0;
  }
  for (const std::string& property : result.properties) {
    const auto catches = [&](const AuditedKernel& kernel) { return kernel.caught.contains(property); };
    if (std::ranges::none_of(result.of_faults, catches)) t.vacuous.push_back(property);
  }
  for (const AuditedKernel& control : result.of_controls) {
    t.control_judged += control.judged;
    t.control_calls += control.ruled;
    for (const auto& [property, cases] : control.flagged) t.control_flagged += cases;
    for (std::size_t rule = 0; rule < other_rule_count; ++rule) {
      t.controls_rejected[rule] += control.rejected[rule] > 0 ? 1 : 0;
      t.calls_rejected[rule] += control.rejected[rule];
    }
  }
  return t;
}

std::string joined(const std::vector<std::string>& words) {
  return words.empty() ? "none" : fmt::format("{}", fmt::join(words, ", "));
}

std::string pairs_text(const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::vector<std::string> texts;
  texts.reserve(pairs.size());
  for (const auto& [fault, property] : pairs) texts.push_back(fmt::format("{} ({})", fault, property));
  return joined(texts);
}

/// The property that needs the fewest cases.
std::string quickest(const AuditedKernel& kernel) {
  const auto& [property, first] =
      *std::ranges::min_element(kernel.caught, {}, [](const auto& entry) { return entry.second.spent; });
  return fmt::format("{} (case {} in {})", property, first.k, name_of(first.dtype));
}

Table rule_table(const AuditResult& result, const Totals& t) {
  Table table{"", columns_of("rule|#faults caught|#controls it rejects|#of their calls|who uses it")};
  const auto of = [](std::int64_t part, auto whole, std::string_view what = "") {
    return fmt::format("{} of {}{}", part, whole, what);
  };
  table.rows.push_back({{"attest", of(t.caught, t.catchable),
                         of(std::ranges::count_if(result.of_controls, [](const auto& c) { return !c.flagged.empty(); }),
                            result.of_controls.size()),
                         of(t.control_flagged, t.control_judged, " cases"), ""}});
  for (std::size_t rule = 0; rule < other_rule_count; ++rule) {
    table.rows.push_back({{other_rules()[rule].name, of(t.told[rule], t.catchable),
                           of(t.controls_rejected[rule], result.of_controls.size()),
                           of(t.calls_rejected[rule], t.control_calls, " calls"), other_rules()[rule].from}});
  }
  return table;
}

Table kind_table(const AuditResult& result) {
  Table table{"", columns_of(fmt::format("kind of fault|#faults|#caught|#by {} cases of a property", short_check))};
  for (const KindScore& score : result.by_kind())
    table.rows.push_back({{name_of(score.kind), score.faults, score.caught, score.by_short_check}});
  return table;
}

Table fault_table(const AuditResult& result) {
  Table table{"",
              columns_of("fault|kind|class|what is wrong|stands for|cases needed|first|properties|rules of others")};
  for (std::size_t n = 0; n < result.of_faults.size(); ++n) {
    const AuditedKernel& kernel = result.of_faults[n];
    const PlantedFault& fault = *result.faults[n];
    std::vector<std::string> rules;
    for (std::size_t rule = 0; rule < other_rule_count; ++rule)
      if (kernel.told_apart[rule])
        rules.push_back(fmt::format("{} ({})", other_rules()[rule].name, *kernel.told_apart[rule]));
    const bool caught = !kernel.caught.empty();
    const Piece never = fault.unseen.empty() ? strong("not caught") : fmt::format("cannot be: {}", fault.unseen);
    table.rows.push_back({{fault.name, name_of(fault.kind), fault.classes, fault.wrong, fault.stands_for,
                           caught ? Piece(std::to_string(*kernel.needed())) : never, caught ? quickest(kernel) : "",
                           kernel.caught.size(), joined(rules)}});
  }
  return table;
}

Table property_table(const AuditResult& result) {
  Table table{"", columns_of("property|faults caught|which, and its case that showed it first")};
  for (const std::string& property : result.properties) {
    std::vector<std::string> which;
    for (const AuditedKernel& kernel : result.of_faults)
      if (const auto first = kernel.caught.find(property); first != kernel.caught.end())
        which.push_back(fmt::format("{} {}", kernel.name.substr(kernel.name.find(':') + 1), first->second.k));
    table.rows.push_back({{property, which.size(), joined(which)}});
  }
  return table;
}

Table control_table(const AuditResult& result) {
  Table table{"", columns_of("control|cases judged|flagged")};
  for (const OtherRule& rule : other_rules()) table.columns.push_back({rule.name});
  for (const AuditedKernel& control : result.of_controls) {
    std::vector<std::string> flagged;
    flagged.reserve(control.flagged.size());
    for (const auto& [property, cases] : control.flagged) flagged.push_back(fmt::format("{} {}", property, cases));
    TableRow row{{control.name, control.judged, joined(flagged)}};
    for (const std::int64_t rejected : control.rejected)
      row.cells.emplace_back(fmt::format("{} of {}", rejected, control.ruled));
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table formula_table() {
  Table table{"", columns_of("rule|accepts")};
  for (const OtherRule& rule : other_rules()) table.rows.push_back({{rule.name, rule.formula}});
  return table;
}

void add_kernel(JsonWriter& json, const AuditedKernel& kernel, bool is_fault) {
  json.member("cases", kernel.cases).member("judged", kernel.judged).member("calls_ruled", kernel.ruled);
  if (is_fault) {
    if (const auto needed = kernel.needed()) json.member("cases_needed", *needed);
    json.key("caught_by").begin_array();
    for (const auto& [property, first] : kernel.caught)
      json.begin_object()
          .member("property", property)
          .member("k", first.k)
          .member("cases", first.spent)
          .member("dtype", name_of(first.dtype))
          .end_object();
  } else {
    json.key("flagged_by").begin_array();
    for (const auto& [property, cases] : kernel.flagged)
      json.begin_object().member("property", property).member("cases", cases).end_object();
  }
  json.end_array().key("rules").begin_array();
  for (std::size_t rule = 0; rule < other_rule_count; ++rule) {
    json.begin_object().member("rule", other_rules()[rule].name).member("rejected", kernel.rejected[rule]);
    if (kernel.told_apart[rule]) json.member("cases_needed", *kernel.told_apart[rule]);
    json.end_object();
  }
  json.end_array();
}

void add_names(JsonWriter& json, std::string_view key, const std::vector<std::string>& names) {
  json.key(key).begin_array();
  for (const std::string& name : names) json.value(name);
  json.end_array();
}

}  // namespace

std::string audit_summary(const AuditResult& result, const AuditPlan& plan) {
  const Totals t = totals_of(result);
  std::string text = fmt::format("{} of {} planted faults caught within {}", t.caught, t.catchable,
                                 audit_cases(plan.cases, plan.check_cases));
  if (t.slowest != nullptr) text += fmt::format("; the last, {}, by case {}", t.slowest->name, *t.slowest->needed());
  text += fmt::format("\nnot caught: {}\nflagged though outputs cannot show it: {}\noutputs cannot show: {}\n",
                      joined(t.missed), joined(t.unseen_but_flagged), joined(t.unseen));
  text += fmt::format("caught by one property only: {}\n", pairs_text(t.only_one));
  text += fmt::format("properties that catch nothing ({} of {}): {}\n\n", t.vacuous.size(), result.properties.size(),
                      joined(t.vacuous));
  if (!result.of_faults.empty()) text += terminal_text(kind_table(result)) + '\n';
  return text + terminal_text(rule_table(result, t));
}

std::string audit_markdown(const AuditResult& result, const AuditPlan& plan) {
  const Totals t = totals_of(result);
  Blocks blocks{Heading{1, fmt::format("Audit, seed {}, a fault within {}, {} judged cases a control", plan.seed,
                                       audit_cases(plan.cases, plan.check_cases), plan.control_cases)}};
  if (result.interrupted) blocks.emplace_back(Paragraph{"The audit was interrupted: what was finished is below."});
  const Blocks body{
      Listing{{"not caught: " + joined(t.missed),
               "flagged though outputs cannot show it: " + joined(t.unseen_but_flagged),
               "caught by one property only: " + pairs_text(t.only_one),
               "properties that catch nothing: " + joined(t.vacuous)}},
      Heading{2, "Kinds of faults"},
      Paragraph{"What is caught at all, and what a check of a few cases of each property catches."},
      kind_table(result),
      Heading{2, "Beside the rules of others"},
      Paragraph{"The rules judge every call that the properties make in f32, f16 and bf16. One catches a fault when it "
                "rejects a call in which it accepts the same kernel without the mistake; a control that it rejects is "
                "a false alarm."},
      rule_table(result, t),
      formula_table(),
      Heading{2, "Faults"},
      Paragraph{"Cases of all properties together until the first flags it; of a rule, until it tells the fault "
                "apart."},
      fault_table(result),
      Heading{2, "Properties"},
      property_table(result),
      Heading{2, "Controls"},
      control_table(result)};
  blocks.insert(blocks.end(), body.begin(), body.end());
  return markdown_of(blocks);
}

std::string audit_json(const AuditResult& result, const AuditPlan& plan) {
  const Totals t = totals_of(result);
  JsonWriter json;
  json.begin_object().member("schema", "attest-audit/1").member("passed", result.passed());
  json.member("interrupted", result.interrupted).member("seed", plan.seed).member("cases_per_fault", plan.cases);
  json.member("check_cases", plan.check_cases);
  json.member("catchable", t.catchable).member("caught", t.caught);
  json.member("control_cases_judged", t.control_judged).member("control_cases_flagged", t.control_flagged);
  json.key("kinds").begin_array();
  for (const KindScore& score : result.by_kind())
    json.begin_object()
        .member("kind", name_of(score.kind))
        .member("faults", score.faults)
        .member("caught", score.caught)
        .member("caught_by_short_check", score.by_short_check)
        .end_object();
  json.end_array().member("cases_of_short_check", short_check);
  add_names(json, "not_caught", t.missed);
  add_names(json, "flagged_though_unseen", t.unseen_but_flagged);
  add_names(json, "vacuous_properties", t.vacuous);
  json.key("caught_by_one_property").begin_array();
  for (const auto& [fault, property] : t.only_one)
    json.begin_object().member("kernel", fault).member("property", property).end_object();
  json.end_array().key("rules").begin_array();
  for (std::size_t rule = 0; rule < other_rule_count; ++rule) {
    const OtherRule& other = other_rules()[rule];
    json.begin_object().member("rule", other.name).member("from", other.from).member("accepts", other.formula);
    json.member("faults_caught", t.told[rule]).member("controls_rejected", t.controls_rejected[rule]);
    json.member("control_calls_rejected", t.calls_rejected[rule]).member("control_calls", t.control_calls).end_object();
  }
  json.end_array().key("faults").begin_array();
  for (std::size_t n = 0; n < result.of_faults.size(); ++n) {
    const PlantedFault& fault = *result.faults[n];
    json.begin_object().member("kernel", result.of_faults[n].name).member("classes", fault.classes);
    json.member("kind", name_of(fault.kind));
    json.member("wrong", fault.wrong).member("stands_for", fault.stands_for).member("unseen", fault.unseen);
    add_kernel(json, result.of_faults[n], /*is_fault=*/true);
    json.end_object();
  }
  json.end_array().key("controls").begin_array();
  for (const AuditedKernel& control : result.of_controls) {
    json.begin_object().member("kernel", control.name);
    add_kernel(json, control, /*is_fault=*/false);
    json.end_object();
  }
  return json.end_array().end_object().text() + '\n';
}

}  // namespace attest
